// The encoding of messages. Each message lists its fields once, in wire order, for writing and
// reading, by a function in namespace hvd:
//
//   void Fields(auto& f, MaybeConst<LinkPut> auto& m) { f(m.generation, m.key, m.value); }
//
// A field is an integer, an enum (little-endian, as wide as its type) or a bool (a byte); a string
// or MessageBytes (the bytes after a 32-bit length); a vector (its items after a 32-bit count); or
// a struct with its own Fields. A variant of messages begins with a byte, the index of the
// alternative. The last field of a message may be its tail: bytes that are not copied, neither on
// writing nor on reading:
//
//   void Fields(auto& f, MaybeConst<OfferMessage> auto& m) { f(m.ready); f.Tail(m.ready.sum); }
//
// A tail follows its length and up to 15 zeros, at a multiple of 16 bytes of its message, so that
// numbers in it can be used in place. Pure; any thread.
#ifndef HVD_RUNTIME_NET_FIELDS_H_
#define HVD_RUNTIME_NET_FIELDS_H_

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/status.h"
#include "runtime/base/text/format.h"

namespace hvd {

// M is T when fields are read, const T when they are written.
template <typename M, typename T>
concept MaybeConst = std::same_as<std::remove_const_t<M>, T>;

template <typename T>
concept ScalarField = std::is_integral_v<T> || std::is_enum_v<T>;

// A string of which at most `most` bytes are written. Reading has no limit.
template <typename Text>
struct CutText {
  CutText(Text& text, size_t most) : text(text), most(most) {}
  Text& text;
  size_t most;
};

inline constexpr size_t kTailAlignment = 16;
// The zeros before a tail at this place of its message.
constexpr size_t TailPadding(size_t place) {
  return (kTailAlignment - place % kTailAlignment) % kTailAlignment;
}

struct WholeItem {
  void operator()(auto& f, auto& item) const { f(item); }
};

// A list after a count of type Count, of which at most `most` items are written, each by each(f,
// item). Reading has no limit.
template <typename Count, typename List, typename Each>
struct CutList {
  List& items;
  size_t most;
  Each each;
};
template <typename Count, typename List, typename Each = WholeItem>
CutList<Count, List, Each> CutTo(List& items, size_t most, Each each = {}) {
  return {items, most, each};
}

class FieldWriter {
 public:
  FieldWriter() = default;
  explicit FieldWriter(std::string begin) : bytes_(std::move(begin)) {}
  void operator()(const auto&... fields) { (Put(fields), ...); }
  // See FieldReader.
  static bool SkipRest() { return false; }
  // Writes all but the bytes themselves, which the caller appends to the other fields.
  void Tail(const MessageBytes& tail) {
    bytes_.Put(static_cast<uint32_t>(tail.size()));
    for (size_t zeros = TailPadding(bytes_.size()); zeros > 0; --zeros) bytes_.Put('\0');
  }
  std::string Take() { return bytes_.Take(); }

 private:
  template <typename T>
  void Put(const T& field) {
    if constexpr (ScalarField<T>) {
      bytes_.Put(field);
    } else {
      Fields(*this, field);
    }
  }
  void Put(const std::string& text) { bytes_.PutString(text); }
  void Put(const MessageBytes& bytes) { bytes_.PutString(bytes.view()); }
  template <typename T>
  void Put(const std::vector<T>& list) {
    bytes_.Put(static_cast<uint32_t>(list.size()));
    for (const T& item : list) Put(item);
  }
  template <typename T>
  void Put(const CutText<T>& cut) {
    bytes_.PutString(std::string_view(cut.text).substr(0, cut.most));
  }
  template <typename Count, typename List, typename Each>
  void Put(const CutList<Count, List, Each>& cut) {
    const size_t count = std::min(cut.items.size(), cut.most);
    bytes_.Put(static_cast<Count>(count));
    for (size_t i = 0; i < count; ++i) cut.each(*this, cut.items[i]);
  }

  ByteWriter bytes_;
};

// After the first field that does not fit, AtEnd() stays false and all reads give zero or "". No
// count allocates memory for which the message has no bytes.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}
  // For a message that may have a tail, which takes over its memory.
  explicit FieldReader(MessageBytes& whole) : bytes_(whole.view()), whole_(&whole) {}

  void operator()(auto&&... fields) { (Get(fields), ...); }
  void Tail(MessageBytes& tail) {
    const auto length = bytes_.Get<uint32_t>();
    if (whole_ == nullptr) return Fail();
    const size_t place = whole_->size() - bytes_.left();
    const std::string_view padding = bytes_.GetBytes(TailPadding(place));
    const bool zeros = std::ranges::all_of(padding, [](char zero) { return zero == '\0'; });
    if (!zeros || bytes_.left() != length || !bytes_.ok()) return Fail();
    (void)bytes_.Rest();
    tail = std::move(*whole_);
    tail.Pull(tail.size() - length);
  }
  // For a message of another version, with unknown further fields: skips them.
  bool SkipRest() {
    (void)bytes_.Rest();
    return true;
  }
  bool AtEnd() const { return bytes_.AtEnd(); }

 private:
  template <typename T>
  void Get(T& field) {
    if constexpr (ScalarField<T>) {
      field = bytes_.Get<T>();
    } else {
      Fields(*this, field);
    }
  }
  void Get(bool& field) { field = bytes_.Get<uint8_t>() != 0; }
  void Get(std::string& text) { text = bytes_.GetString(); }
  void Get(MessageBytes& bytes) { bytes = std::string(bytes_.GetString()); }
  template <ScalarField T>
  void Get(std::vector<T>& list) {
    const std::string_view items = bytes_.GetBytes(size_t{bytes_.Get<uint32_t>()} * sizeof(T));
    list.resize(items.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), items.data(), items.size());
  }
  template <typename T>
  void Get(std::vector<T>& list) {
    GetItems<uint32_t>(list, WholeItem());
  }
  template <typename T>
  void Get(CutText<T>& cut) {
    Get(cut.text);
  }
  template <typename Count, typename List, typename Each>
  void Get(CutList<Count, List, Each>& cut) {
    GetItems<Count>(cut.items, cut.each);
  }
  // Not resized up front: a count that the bytes do not hold must not allocate.
  template <typename Count>
  void GetItems(auto& list, auto each) {
    const auto count = bytes_.Get<Count>();
    for (Count i = 0; i < count && bytes_.ok(); ++i) each(*this, list.emplace_back());
  }

  void Fail() { (void)bytes_.GetBytes(bytes_.left() + 1); }

  ByteReader bytes_;
  MessageBytes* whole_ = nullptr;
};

// A struct alone, without a leading byte.
template <typename T>
std::string EncodeFields(const T& value) {
  FieldWriter writer;
  Fields(writer, value);
  return writer.Take();
}

// Nothing unless the bytes are exactly one.
template <typename T>
std::optional<T> DecodeFields(std::string_view bytes) {
  FieldReader reader(bytes);
  T value;
  Fields(reader, value);
  return reader.AtEnd() ? std::optional<T>(std::move(value)) : std::nullopt;
}

// Appends to the bytes of `begin`.
template <typename Variant>
std::string EncodeMessage(const Variant& message, std::string begin = {}) {
  FieldWriter writer(std::move(begin));
  writer(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { Fields(writer, m); }, message);
  return writer.Take();
}

template <typename Variant, size_t I = 0>
Result<Variant> ReadType(size_t type, FieldReader& reader, std::string_view kind) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return InvalidArgument(Format("a {} of the unknown type {}", kind, type));
  } else {
    if (type != I) return ReadType<Variant, I + 1>(type, reader, kind);
    std::variant_alternative_t<I, Variant> message;
    Fields(reader, message);
    if (!reader.AtEnd()) return InvalidArgument(Format("a {} of a wrong length", kind));
    return Variant(std::move(message));
  }
}

template <typename Variant>
Result<Variant> ReadMessage(FieldReader reader, std::string_view kind) {
  if (reader.AtEnd()) return InvalidArgument(Format("an empty {}", kind));
  uint8_t type = 0;
  reader(type);
  return ReadType<Variant>(type, reader, kind);
}

// kInvalidArgument for anything that is not exactly one message; `kind` is its name in the error:
// "link message". For messages without a tail.
template <typename Variant>
Result<Variant> DecodeMessage(std::string_view bytes, std::string_view kind) {
  return ReadMessage<Variant>(FieldReader(bytes), kind);
}
// The same for messages of which some have one.
template <typename Variant>
Result<Variant> DecodeWithTail(MessageBytes bytes, std::string_view kind) {
  return ReadMessage<Variant>(FieldReader(bytes), kind);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_FIELDS_H_
