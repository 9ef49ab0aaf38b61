// Reads a file named by a user in bounded time and memory: it may be a silent pipe or an endless
// device.
#ifndef HVD_RUNTIME_BASE_READ_FILE_H_
#define HVD_RUNTIME_BASE_READ_FILE_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct ReadLimits {
  size_t bytes = size_t{16} << 20;           // whole MiB
  Duration time = std::chrono::seconds(10);  // for the whole read
};

// Reads regular files, pipes (also `<(command)`) and devices. Error messages continue after the
// file name: "cannot be read: No such file or directory", "is a directory", "is longer than 16
// MiB", "has not ended within 10 s". Any thread.
Result<std::string> ReadFileWithin(const std::string& path, const ReadLimits& limits);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_READ_FILE_H_
