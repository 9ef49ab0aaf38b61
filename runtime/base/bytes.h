// Little-endian writing and bounds-checked reading of message fields.
#ifndef HVD_RUNTIME_BASE_BYTES_H_
#define HVD_RUNTIME_BASE_BYTES_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hvd {

static_assert(std::endian::native == std::endian::little, "wire formats are little-endian");

// Appends fields to a string. Integers are stored as in memory (little-endian).
class ByteWriter {
 public:
  ByteWriter() = default;
  // Appends to these bytes.
  explicit ByteWriter(std::string begin) : bytes_(std::move(begin)) {}

  // Reserves room for `bytes` more bytes.
  void Reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T> ByteWriter& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // 32-bit length, then the bytes.
  ByteWriter& PutString(std::string_view s) {
    Put(static_cast<uint32_t>(s.size()));
    bytes_.append(s);
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads fields in order. After the first field that does not fit, ok() is false and all reads
// return zero or "".
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T> T Get() {
    T value{};
    std::string_view field = GetBytes(sizeof value);
    if (ok_) std::memcpy(&value, field.data(), sizeof value);
    return value;
  }
  // The view lives as long as the bytes given to the constructor.
  std::string_view GetString() { return GetBytes(Get<uint32_t>()); }
  std::string_view GetBytes(size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    std::string_view field = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return field;
  }
  std::string_view Rest() { return GetBytes(bytes_.size()); }
  // Number of bytes not read yet.
  size_t left() const { return bytes_.size(); }

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_BYTES_H_
