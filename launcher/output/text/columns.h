// Widths of text on a terminal. Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

// Columns of UTF-8 text: one per character, none for colour sequences.
size_t ColumnsOf(std::string_view text);

// The longest beginning of at most `columns` columns; a colour is reset at the cut.
std::string CutToColumns(std::string_view text, size_t columns);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_
