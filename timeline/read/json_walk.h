// JsonWalk: a one-pass, zero-copy scanner for JSON values and object members. Accepts RFC 8259,
// nested up to kDeepest; does not validate UTF-8.
//
// One thread at a time; the text is not owned.
#ifndef HVD_TIMELINE_READ_JSON_WALK_H_
#define HVD_TIMELINE_READ_JSON_WALK_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

enum class Walked : uint8_t {
  kWhole,  // the walk is after the value
  kCut,    // the text is truncated
  kBad,    // invalid JSON
};

class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  const char* at() const { return at_; }
  bool AtEnd() const { return at_ == end_; }
  std::string_view Rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  // Skips to the next non-space character; kCut: none.
  Walked Space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ == end_ ? Walked::kCut : Walked::kWhole;
  }
  // Consumes the next character if it is this one; else false.
  bool Accept(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // Scans a value.
  Walked Value(int depth = 0);
  // Scans a string, starting at its quote.
  Walked String();
  // Scans an object. `on_member` gets the raw name (without quotes) and value of each member.
  template <typename OnMember>
  Walked Object(const OnMember& on_member, int depth = 0);

  static constexpr int kDeepest = 64;

 private:
  Walked Array(int depth);
  Walked Scalar();

  const char* at_;
  const char* end_;
};

// Resolves the escapes of a raw JSON string (without quotes). Keeps bytes that are not UTF-8.
std::string Unescaped(std::string_view raw);
// The text of a raw value: "" unless it is a string.
std::string StringOf(std::string_view value);
// A whole number; `fallback` for other values.
int64_t IntegerOf(std::string_view value, int64_t fallback = 0);
// Calls `on_member` for each member of `value` if it is an object.
template <typename OnMember>
void ForEachMember(std::string_view value, const OnMember& on_member) {
  if (!value.empty() && value[0] == '{') (void)JsonWalk(value).Object(on_member);
}

template <typename OnMember>
Walked JsonWalk::Object(const OnMember& on_member, int depth) {
  if (depth > kDeepest) return Walked::kBad;
  ++at_;
  if (Space() != Walked::kWhole) return Walked::kCut;
  if (Accept('}')) return Walked::kWhole;
  for (;;) {
    if (*at_ != '"') return Walked::kBad;
    const char* name = at_ + 1;
    if (const Walked walked = String(); walked != Walked::kWhole) return walked;
    const std::string_view key(name, static_cast<size_t>(at_ - 1 - name));
    if (Space() != Walked::kWhole) return Walked::kCut;
    if (!Accept(':')) return Walked::kBad;
    if (Space() != Walked::kWhole) return Walked::kCut;
    const char* value = at_;
    if (const Walked walked = Value(depth + 1); walked != Walked::kWhole) return walked;
    on_member(key, std::string_view(value, static_cast<size_t>(at_ - value)));
    if (Space() != Walked::kWhole) return Walked::kCut;
    if (Accept('}')) return Walked::kWhole;
    if (!Accept(',')) return Walked::kBad;
    if (Space() != Walked::kWhole) return Walked::kCut;
  }
}

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_JSON_WALK_H_
