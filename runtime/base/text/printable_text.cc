#include "runtime/base/text/printable_text.h"

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string_view CutAtCharacter(std::string_view text, size_t length) {
  while (length > 0 && IsContinuation(text[length])) --length;
  return text.substr(0, length);
}

// Bytes of the UTF-8 character at the start of `text` if a terminal displays it without side
// effects; 0 for control characters and bytes that are not UTF-8.
size_t ShownBytes(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  bool control = first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;  // U+0080 to U+009F
  return control ? 0 : length;
}

void AppendEscaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  auto byte = static_cast<unsigned char>(c);
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

}  // namespace

std::string Printable(std::string_view text, size_t most) {
  bool cut = text.size() > most;
  std::string_view rest = cut ? CutAtCharacter(text, most) : text;
  std::string out;
  while (!rest.empty()) {
    size_t shown = ShownBytes(rest);
    if (shown > 0) {
      out += rest.substr(0, shown);
    } else {
      AppendEscaped(out, rest[0]);
    }
    rest.remove_prefix(shown > 0 ? shown : 1);
  }
  if (cut) out += Format("... ({} characters)", text.size());
  return out;
}

std::string Quoted(std::string_view text, size_t most) { return "'" + Printable(text, most) + "'"; }

}  // namespace hvd
