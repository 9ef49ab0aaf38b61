#include "runtime/base/check.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace hvd {

void CheckFailed(const char* file, int line, const char* condition, const char* names,
                 std::initializer_list<uint64_t> values) {
  char text[1024];
  size_t length = 0;
  auto add = [&](const char* format, auto... arguments) {
    const int added = std::snprintf(text + length, sizeof text - length, format, arguments...);
    if (added > 0) length += static_cast<size_t>(added);
    if (length > sizeof text - 2) length = sizeof text - 2;  // leave room for the end of the line
  };
  add("hvd: process %d stops at %s:%d, because its memory would be corrupted: %s does not hold",
      static_cast<int>(::getpid()), file, line, condition);
  const char* before = "";
  if (values.size() != 0) add(" (%s = ", names);
  for (const uint64_t value : values) {
    add("%s%" PRIu64, before, value);
    before = ", ";
  }
  add("%s", values.size() != 0 ? "); this is a defect of hvd, please report it"
                               : "; this is a defect of hvd, please report it");
  text[length++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, length);
  std::abort();
}

}  // namespace hvd
