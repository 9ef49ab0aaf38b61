// Formats names and shapes of a request for messages.
#ifndef HVD_RUNTIME_CORE_REQUEST_REQUEST_TEXT_H_
#define HVD_RUNTIME_CORE_REQUEST_REQUEST_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hvd {

// 'name', truncated if it is long.
std::string Quoted(std::string_view name);

// "[3, 4]"; with `any_rows` "[*, 4]".
std::string ShapeText(std::span<const int64_t> shape, bool any_rows = false);

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_REQUEST_TEXT_H_
