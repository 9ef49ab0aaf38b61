// SSH data types (RFC 4251): big-endian, strings with a 32-bit length. For keys and ssh-agent
// messages.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_SSH_BYTES_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_SSH_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

class SshWriter {
 public:
  SshWriter& Byte(uint8_t value) {
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }
  SshWriter& Number(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) Byte(static_cast<uint8_t>(value >> shift));
    return *this;
  }
  SshWriter& String(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  // An unsigned number, most significant byte first.
  SshWriter& Mpint(std::string_view magnitude) {
    while (!magnitude.empty() && magnitude.front() == 0) magnitude.remove_prefix(1);
    bool padded = !magnitude.empty() && (magnitude.front() & 0x80) != 0;
    return String((padded ? std::string(1, '\0') : std::string()) + std::string(magnitude));
  }
  std::string Release() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first truncated field, ok() is false and all reads return zero or "".
class SshReader {
 public:
  explicit SshReader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view Bytes(size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    std::string_view field = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return field;
  }
  uint8_t Byte() {
    std::string_view field = Bytes(1);
    return ok_ ? static_cast<uint8_t>(field[0]) : 0;
  }
  uint32_t Number() {
    uint32_t value = 0;
    for (char c : Bytes(4)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view String() { return Bytes(Number()); }
  bool ok() const { return ok_; }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_SSH_BYTES_H_
