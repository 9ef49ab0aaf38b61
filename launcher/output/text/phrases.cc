#include "launcher/output/text/phrases.h"

#include "runtime/base/text/format.h"

namespace hvd {

std::string SecondsText(Duration duration) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  if (ms >= std::chrono::seconds(1)) ms = (ms + std::chrono::milliseconds(50)) / 100 * 100;
  std::string number = std::to_string(static_cast<double>(ms.count()) / 1e3);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number + " s";
}

std::string RankRanges(std::span<const uint32_t> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    uint32_t first = ranks[i], last = first;
    while (++i < ranks.size() && ranks[i] == last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += Format("-{}", last);
  }
  return text;
}

}  // namespace hvd
