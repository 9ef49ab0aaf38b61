// Durations in words: "10 s", "0.5 s". Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_SECONDS_TEXT_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_SECONDS_TEXT_H_

#include <string>

#include "runtime/base/clock.h"

namespace hvd {

// "0.25 s", "3.2 s", "10 s": to the millisecond below a second, to a tenth from there on, without
// zeros at the end.
std::string SecondsText(Duration duration);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_SECONDS_TEXT_H_
