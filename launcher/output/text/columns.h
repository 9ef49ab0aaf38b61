// How much of a text fits a line of a terminal. Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

// How many columns UTF-8 text takes, where a character takes one; colours take none.
size_t ColumnsOf(std::string_view text);

// The beginning of it that takes at most so many; a colour is ended where it is cut.
std::string CutToColumns(std::string_view text, size_t columns);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_COLUMNS_H_
