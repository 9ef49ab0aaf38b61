// How a process ended, and the streams it writes to: plain values.
#ifndef HVD_LAUNCHER_PROCESS_PROCESS_END_H_
#define HVD_LAUNCHER_PROCESS_PROCESS_END_H_

#include <cstdint>

#include "runtime/base/exit_status.h"

namespace hvd {

// kResult: the return value of a function of horovod.run(), as bytes that hvdrun forwards.
enum class OutputStream : uint8_t { kStdout = 0, kStderr = 1, kResult = 2 };
inline constexpr size_t kOutputStreams = 3;

// How a process ended.
struct ProcessEnd {
  bool by_signal = false;
  int32_t value = 0;  // the exit code, or the signal

  bool ok() const { return !by_signal && value == 0; }
  // The exit code as a shell reports it.
  int exit_code() const { return by_signal ? kSignalBase + value : value; }
  bool operator==(const ProcessEnd&) const = default;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROCESS_END_H_
