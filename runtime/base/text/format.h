// String formatting: Format("rank {} on host {}", rank, host). The syntax of std::format, which our
// compilers do not provide yet; checked at compile time.
#ifndef HVD_RUNTIME_BASE_TEXT_FORMAT_H_
#define HVD_RUNTIME_BASE_TEXT_FORMAT_H_

#include <fmt/core.h>

#include <string>

namespace hvd {

std::string FormatArguments(fmt::string_view text, fmt::format_args arguments);

template <typename... Arguments>
std::string Format(fmt::format_string<const Arguments&...> text, const Arguments&... arguments) {
  return FormatArguments(text, fmt::make_format_args(arguments...));
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_FORMAT_H_
