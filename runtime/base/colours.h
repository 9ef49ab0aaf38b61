// Whether text on a descriptor is coloured.
#ifndef HVD_RUNTIME_BASE_COLOURS_H_
#define HVD_RUNTIME_BASE_COLOURS_H_

#include <unistd.h>

#include <string>

#include "runtime/base/env.h"

namespace hvd {

// A terminal is, unless NO_COLOR is set; FORCE_COLOR colours other descriptors, too.
inline bool WantsColours(int fd) {
  if (!GetEnv("NO_COLOR").value_or("").empty()) return false;
  if (const auto force = GetEnv("FORCE_COLOR"); force && !force->empty()) return *force != "0";
  return ::isatty(fd) == 1 && GetEnv("TERM").value_or("dumb") != "dumb";
}

// The text in red, for stderr.
inline std::string RedOnStderr(std::string text) {
  return WantsColours(STDERR_FILENO) ? "\x1b[31m" + text + "\x1b[0m" : text;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_COLOURS_H_
