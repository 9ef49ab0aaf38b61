// Whether text on a descriptor is coloured, and how.
#ifndef HVD_RUNTIME_BASE_COLOURS_H_
#define HVD_RUNTIME_BASE_COLOURS_H_

#include <unistd.h>

#include <string>
#include <string_view>

#include "runtime/base/env.h"

namespace hvd {

// True for a terminal (unless TERM is unset or dumb). NO_COLOR disables, FORCE_COLOR (0: disables)
// forces colours.
inline bool WantsColours(int fd) {
  if (!GetEnv("NO_COLOR").value_or("").empty()) return false;
  if (const auto force = GetEnv("FORCE_COLOR"); force && !force->empty()) return *force != "0";
  return ::isatty(fd) == 1 && GetEnv("TERM").value_or("dumb") != "dumb";
}

inline std::string Red(std::string_view text) { return "\x1b[31m" + std::string(text) + "\x1b[0m"; }

// In red if stderr is coloured.
inline std::string RedOnStderr(std::string_view text) {
  return WantsColours(STDERR_FILENO) ? Red(text) : std::string(text);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_COLOURS_H_
