#include "runtime/base/text/format.h"

#include <fmt/format.h>

namespace hvd {

std::string FormatArguments(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}

}  // namespace hvd
