// Numbers, durations and ranks as text: "3 ranks", "10 s", "ranks 0-3, 7". Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_PHRASES_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_PHRASES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"

namespace hvd {

inline std::string Counted(size_t count, const char* one, const char* many) {
  return Format("{} {}", count, count == 1 ? one : many);
}

// The text with a full stop, unless it ends with a question mark or a full stop already. Pure.
inline std::string WithStop(std::string text) {
  return text.ends_with('?') || text.ends_with('.') ? text : text + ".";
}

// "0.25 s", "3.2 s", "10 s": milliseconds below one second, tenths from there on, without trailing
// zeros.
std::string SecondsText(Duration duration);

// `ranks` ascend.
std::string RankRanges(std::span<const uint32_t> ranks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_PHRASES_H_
