// Makes external text safe to print in a message. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_PRINTABLE_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_PRINTABLE_TEXT_H_

#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kMaxShown = 60;
inline constexpr size_t kMaxShownPath = 200;  // longer, since the end of a path identifies the file

// Escapes control characters and invalid UTF-8 as \n, \t or \x1b; text beyond `most` bytes is cut
// and counted. Never splits a UTF-8 character.
std::string Printable(std::string_view text, size_t most = kMaxShown);
// The same in single quotes: 'text'.
std::string Quoted(std::string_view text, size_t most = kMaxShown);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_PRINTABLE_TEXT_H_
