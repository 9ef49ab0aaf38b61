// Words for messages: foreign text made safe to print, and the nearest of the things that exist.
#ifndef HVD_CONFIGS_MESSAGE_TEXT_H_
#define HVD_CONFIGS_MESSAGE_TEXT_H_

#include <span>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kMaxShown = 60;
inline constexpr size_t kMaxShownPath = 200;  // of a file: its end says which one it is

// Control characters and bytes that are no UTF-8 as \n, \t or \x1b; what exceeds `most` bytes is
// cut and counted. Never splits a UTF-8 character.
std::string Printable(std::string_view text, size_t most = kMaxShown);
// The same in single quotes: 'text'.
std::string Quoted(std::string_view text, size_t most = kMaxShown);

// Single-character edits (insert, delete, replace, swap of neighbours) from one word to the other.
int EditDistance(std::string_view a, std::string_view b);
// The candidate within a third of its length of edits, or empty when none is that near.
std::string_view NearestOf(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace hvd

#endif  // HVD_CONFIGS_MESSAGE_TEXT_H_
