#include "timeline/read/json_walk.h"

#include <array>
#include <cstring>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// Characters that may appear unescaped in a string.
constexpr std::array<bool, 256> PlainCharacters() {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < plain.size(); ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = PlainCharacters();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// -1: not four digits.
int CodeUnit(std::string_view digits) {
  if (digits.size() < 4) return -1;
  int unit = 0;
  for (char c : digits.substr(0, 4)) {
    const int digit = HexDigit(c);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void AppendUtf8(std::string* out, uint32_t code) {
  const auto byte = [&](uint32_t bits) { *out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

bool IsSurrogate(int unit, int first) { return unit >= first && unit < first + 0x400; }

// `text` follows "\u"; returns how many of its characters are used.
size_t AppendUnicode(std::string* out, std::string_view text) {
  constexpr uint32_t kReplacement = 0xFFFD;
  constexpr int kHigh = 0xD800, kLow = 0xDC00;
  const int unit = CodeUnit(text);
  if (unit < 0) return 0;
  const bool pair = text.size() >= 10 && text[4] == '\\' && text[5] == 'u';
  const int second = pair ? CodeUnit(text.substr(6)) : -1;
  if (IsSurrogate(unit, kHigh) && IsSurrogate(second, kLow)) {
    AppendUtf8(out, 0x10000U + (static_cast<uint32_t>(unit - kHigh) << 10U) +
                        static_cast<uint32_t>(second - kLow));
    return 10;
  }
  const bool lone = IsSurrogate(unit, kHigh) || IsSurrogate(unit, kLow);
  AppendUtf8(out, lone ? kReplacement : static_cast<uint32_t>(unit));
  return 4;
}

}  // namespace

Walked JsonWalk::String() {
  const char* p = at_ + 1;
  for (;;) {
    while (p < end_ && kPlain[static_cast<unsigned char>(*p)]) ++p;
    if (p == end_) return Walked::kCut;
    if (*p == '"') {
      at_ = p + 1;
      return Walked::kWhole;
    }
    if (*p != '\\') return Walked::kBad;
    if (end_ - p < 2) return Walked::kCut;
    if (p[1] == 'u') {
      for (int i = 2; i < 6; ++i) {
        if (p + i == end_) return Walked::kCut;
        if (HexDigit(p[i]) < 0) return Walked::kBad;
      }
      p += 6;
      continue;
    }
    if (std::memchr("\"\\/bfnrt", p[1], 8) == nullptr) return Walked::kBad;
    p += 2;
  }
}

Walked JsonWalk::Array(int depth) {
  if (depth > kDeepest) return Walked::kBad;
  ++at_;
  if (Space() != Walked::kWhole) return Walked::kCut;
  if (Accept(']')) return Walked::kWhole;
  for (;;) {
    if (const Walked walked = Value(depth + 1); walked != Walked::kWhole) return walked;
    if (Space() != Walked::kWhole) return Walked::kCut;
    if (Accept(']')) return Walked::kWhole;
    if (!Accept(',')) return Walked::kBad;
    if (Space() != Walked::kWhole) return Walked::kCut;
  }
}

// A number, true, false or null. If the text ends with it, more of it may follow.
Walked JsonWalk::Scalar() {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (*at_ != word[0]) continue;
    const std::string_view here = Rest().substr(0, word.size());
    if (here != word.substr(0, here.size())) return Walked::kBad;
    if (here.size() < word.size()) return Walked::kCut;
    at_ += word.size();
    return Walked::kWhole;
  }
  const char* p = at_;
  const auto digits = [&] {
    const char* first = p;
    while (p < end_ && IsDigit(*p)) ++p;
    return p - first;
  };
  if (*p == '-') ++p;
  if (p == end_) return Walked::kCut;
  const bool zero = *p == '0';
  const auto whole = digits();
  if (whole == 0 || (zero && whole > 1)) return Walked::kBad;
  if (p < end_ && *p == '.') {
    ++p;
    if (digits() == 0) return p == end_ ? Walked::kCut : Walked::kBad;
  }
  if (p < end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end_ && (*p == '+' || *p == '-')) ++p;
    if (digits() == 0) return p == end_ ? Walked::kCut : Walked::kBad;
  }
  if (p == end_) return Walked::kCut;
  at_ = p;
  return Walked::kWhole;
}

Walked JsonWalk::Value(int depth) {
  if (AtEnd()) return Walked::kCut;
  switch (*at_) {
    case '"': return String();
    case '{': return Object([](std::string_view, std::string_view) {}, depth);
    case '[': return Array(depth);
    default: return Scalar();
  }
}

std::string Unescaped(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  constexpr std::string_view kEscapes = "bfnrt", kMeanings = "\b\f\n\r\t";
  while (!raw.empty()) {
    const size_t plain = std::min(raw.find('\\'), raw.size());
    text += raw.substr(0, plain);
    raw.remove_prefix(plain);
    if (raw.size() < 2) break;
    const char escape = raw[1];
    raw.remove_prefix(2);
    if (escape == 'u') {
      raw.remove_prefix(AppendUnicode(&text, raw));
    } else {
      const size_t at = kEscapes.find(escape);
      text += at == std::string_view::npos ? escape : kMeanings[at];
    }
  }
  return text;
}

std::string StringOf(std::string_view value) {
  if (value.size() < 2 || value[0] != '"') return "";
  return Unescaped(value.substr(1, value.size() - 2));
}

int64_t IntegerOf(std::string_view value, int64_t fallback) {
  return ParseWhole<int64_t>(value).value_or(fallback);
}

}  // namespace hvd
