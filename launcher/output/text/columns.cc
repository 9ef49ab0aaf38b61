#include "launcher/output/text/columns.h"

namespace hvd {
namespace {

// The length of the escape sequence at this position ("\x1b[31m"); 0: none.
size_t EscapeLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  size_t end = text.find_first_not_of("0123456789;?", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

bool GoesOn(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

struct Measured {
  size_t bytes = 0, columns = 0;
  bool escapes = false;
};

Measured Measure(std::string_view text, size_t most_columns) {
  Measured m;
  while (m.bytes < text.size()) {
    if (size_t escape = EscapeLength(text.substr(m.bytes)); escape > 0) {
      m.bytes += escape;
      m.escapes = true;
      continue;
    }
    if (!GoesOn(text[m.bytes])) {
      if (m.columns == most_columns) break;
      ++m.columns;
    }
    ++m.bytes;
  }
  return m;
}

}  // namespace

size_t ColumnsOf(std::string_view text) { return Measure(text, text.size()).columns; }

std::string CutToColumns(std::string_view text, size_t columns) {
  const Measured fits = Measure(text, columns);
  std::string cut(text.substr(0, fits.bytes));
  return fits.bytes < text.size() && fits.escapes ? cut + "\x1b[0m" : cut;
}

}  // namespace hvd
