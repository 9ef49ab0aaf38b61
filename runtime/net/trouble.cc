#include "runtime/net/trouble.h"

#include <algorithm>
#include <vector>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr std::string_view kSilent = "trouble.silent.", kEnding = "trouble.ending.",
                           kStalled = "trouble.stalled.", kStopped = "trouble.stopped.";

// Numbers separated by dots, as many as are expected.
std::optional<std::vector<uint32_t>> Numbers(std::string_view text, size_t expected) {
  std::vector<uint32_t> numbers;
  while (numbers.size() < expected) {
    const bool last = numbers.size() + 1 == expected;
    const std::string_view word = last ? text : text.substr(0, text.find('.'));
    const auto number = ParseWhole<uint32_t>(word);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return numbers;
}

std::optional<Trouble> EndingOf(std::string_view number, std::string_view reason, bool stalled) {
  const auto rank = Numbers(number, 1);
  if (!rank || reason.empty()) return std::nullopt;
  return RankEnding{(*rank)[0], std::string(reason), stalled};
}

struct Encoder {
  uint32_t number;
  TroubleEntry operator()(const RankSilent& silent) const {
    return {Format("{}{}.{}.{}", kSilent, silent.rank, silent.peer, number),
            std::to_string(silent.silent_ms)};
  }
  TroubleEntry operator()(const RankEnding& ending) const {
    return {std::string(ending.stalled ? kStalled : kEnding) + std::to_string(ending.rank),
            ending.reason.substr(0, kMaxKvValue)};
  }
  TroubleEntry operator()(const RankStopped& stopped) const {
    return {std::string(kStopped) + std::to_string(stopped.rank), ""};
  }
};

}  // namespace

TroubleEntry EncodeTrouble(const Trouble& trouble, uint32_t number) {
  return std::visit(Encoder{number}, trouble);
}

std::optional<Trouble> DecodeTrouble(std::string_view key, std::string_view value) {
  if (key.starts_with(kSilent)) {
    const auto which = Numbers(key.substr(kSilent.size()), 3);
    const auto silent_ms = Numbers(value, 1);
    if (!which || !silent_ms) return std::nullopt;
    return RankSilent{(*which)[0], (*which)[1], (*silent_ms)[0]};
  }
  if (key.starts_with(kEnding)) return EndingOf(key.substr(kEnding.size()), value, false);
  if (key.starts_with(kStalled)) return EndingOf(key.substr(kStalled.size()), value, true);
  if (key.starts_with(kStopped)) {
    const auto rank = Numbers(key.substr(kStopped.size()), 1);
    if (rank && value.empty()) return RankStopped{(*rank)[0]};
  }
  return std::nullopt;
}

}  // namespace hvd
