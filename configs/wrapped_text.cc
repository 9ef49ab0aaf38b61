#include "configs/wrapped_text.h"

#include <sstream>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kWidth = 79;

}  // namespace

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string Wrapped(std::string_view text, size_t indent, std::string first) {
  const std::string margin(indent, ' ');
  std::string out, line = Padded(std::move(first), indent);
  bool empty = true;  // the line has no word yet
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!empty && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = margin;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + "\n";
}

}  // namespace hvd
