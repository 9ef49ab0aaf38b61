#include "launcher/process/exec_size.h"

#include <sys/resource.h>

#include <algorithm>
#include <string_view>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kLeast = 128 * 1024, kMost = 6 * 1024 * 1024;

std::string NameOf(std::string_view entry) {
  return "the variable " + Printable(entry.substr(0, entry.find('=')));
}

}  // namespace

ExecLimits LimitsHere() {
  rlimit stack{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_STACK, &stack);
  return {.all = std::clamp<size_t>(stack.rlim_cur / 4, kLeast, kMost)};
}

std::optional<std::string> WhyTooLong(const std::vector<std::string>& argv,
                                      const std::vector<std::string>& environment,
                                      const ExecLimits& limits) {
  size_t total = argv.empty() ? 0 : argv[0].size() + 1;  // the program's path, once more
  std::string_view longest;
  bool is_variable = false;
  for (const auto* list : {&argv, &environment}) {
    for (const std::string& text : *list) {
      total += text.size() + 1 + sizeof(char*);
      if (text.size() <= longest.size()) continue;
      longest = text;
      is_variable = list == &environment;
    }
  }
  std::string what = is_variable ? NameOf(longest) : "the argument " + Quoted(longest);
  if (longest.size() > limits.one) {
    return Format(
        "{} is {} bytes long, but the kernel takes at most {} bytes of one; put it into a file and "
        "pass the file's name",
        what, longest.size(), limits.one);
  }
  if (total > limits.all) {
    return Format(
        "the command and its variables are {} bytes long, but the kernel takes at most {} of all, "
        "a quarter of the stack's limit (ulimit -s); the longest is {} with {} bytes",
        total, limits.all, what, longest.size());
  }
  return std::nullopt;
}

}  // namespace hvd
