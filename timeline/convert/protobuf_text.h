// ProtobufText: writes fields of a protobuf message in wire format. Pure.
#ifndef HVD_TIMELINE_CONVERT_PROTOBUF_TEXT_H_
#define HVD_TIMELINE_CONVERT_PROTOBUF_TEXT_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

class ProtobufText {
 public:
  void Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3U);
    Varint(value);
  }
  void Signed(uint32_t field, int64_t value) { Number(field, static_cast<uint64_t>(value)); }
  void Double(uint32_t field, double value) {
    Varint(uint64_t{field} << 3U | 1U);
    uint64_t bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8U) bytes_ += static_cast<char>(bits & 0xFFU);
  }
  // Text, bytes, or a message inside of this one.
  void Bytes(uint32_t field, std::string_view bytes) {
    Varint(uint64_t{field} << 3U | 2U);
    Varint(bytes.size());
    bytes_ += bytes;
  }

  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void Clear() { bytes_.clear(); }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_PROTOBUF_TEXT_H_
