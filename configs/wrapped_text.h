// Text in the 80 columns of a terminal. Pure.
#ifndef HVD_CONFIGS_WRAPPED_TEXT_H_
#define HVD_CONFIGS_WRAPPED_TEXT_H_

#include <string>
#include <string_view>

namespace hvd {

// With blanks up to `width`.
std::string Padded(std::string text, size_t width);
// Breaks a text at blanks. Its first line begins behind `first`, the others at column `indent`.
std::string Wrapped(std::string_view text, size_t indent, std::string first = "");

}  // namespace hvd

#endif  // HVD_CONFIGS_WRAPPED_TEXT_H_
