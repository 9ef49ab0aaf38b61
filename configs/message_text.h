// Text functions for messages: suggestions for misspelt words, detection of typographic characters.
#ifndef HVD_CONFIGS_MESSAGE_TEXT_H_
#define HVD_CONFIGS_MESSAGE_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/text/printable_text.h"

namespace hvd {

// Converts ASCII letters to lower case.
std::string InLowerCase(std::string_view text);
// Single-character edits (insert, delete, replace, swap of neighbours) from one word to the other.
int EditDistance(std::string_view a, std::string_view b);
// The nearest candidate within an edit distance of a third of its length, or empty.
std::string_view NearestOf(std::string_view word, std::span<const std::string_view> candidates);
// "a no-break space (U+00A0)", for the first character in `text` that word processors substitute
// for a blank, dash or quote; empty: none.
std::string_view TypographicSignIn(std::string_view text);

}  // namespace hvd

#endif  // HVD_CONFIGS_MESSAGE_TEXT_H_
