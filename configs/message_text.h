// Words for messages: the nearest of the things that exist; foreign text made safe to print.
#ifndef HVD_CONFIGS_MESSAGE_TEXT_H_
#define HVD_CONFIGS_MESSAGE_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/text/printable_text.h"

namespace hvd {

// ASCII letters in lower case.
std::string InLowerCase(std::string_view text);
// Single-character edits (insert, delete, replace, swap of neighbours) from one word to the other.
int EditDistance(std::string_view a, std::string_view b);
// The candidate within a third of its length of edits, or empty when none is that near.
std::string_view NearestOf(std::string_view word, std::span<const std::string_view> candidates);
// "a no-break space (U+00A0)", of the first sign in `text` that word processors put in the place of
// a blank, a dash or a quote; empty: there is none.
std::string_view TypographicSignIn(std::string_view text);

}  // namespace hvd

#endif  // HVD_CONFIGS_MESSAGE_TEXT_H_
