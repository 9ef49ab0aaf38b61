#include "runtime/net/trouble.h"

#include <charconv>
#include <vector>

#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr std::string_view kSilent = "trouble.silent.", kEnding = "trouble.ending.",
                           kStopped = "trouble.stopped.";

// Numbers with dots between them, as many as are expected.
std::optional<std::vector<uint32_t>> Numbers(std::string_view text, size_t expected) {
  std::vector<uint32_t> numbers;
  while (numbers.size() < expected) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (numbers.size() == expected) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return numbers;
}

struct Encoder {
  uint32_t number;
  TroubleEntry operator()(const RankSilent& silent) const {
    return {std::string(kSilent) + std::to_string(silent.rank) + "." + std::to_string(silent.peer) +
                "." + std::to_string(number),
            std::to_string(silent.silent_ms)};
  }
  TroubleEntry operator()(const RankEnding& ending) const {
    return {std::string(kEnding) + std::to_string(ending.rank),
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
  if (key.starts_with(kEnding)) {
    const auto rank = Numbers(key.substr(kEnding.size()), 1);
    if (!rank || value.empty()) return std::nullopt;
    return RankEnding{(*rank)[0], std::string(value)};
  }
  if (key.starts_with(kStopped)) {
    const auto rank = Numbers(key.substr(kStopped.size()), 1);
    if (rank && value.empty()) return RankStopped{(*rank)[0]};
  }
  return std::nullopt;
}

}  // namespace hvd
