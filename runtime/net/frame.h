// Frames: the unit of a stream between driver and agent. At most 64 KiB each, a fixed little-endian
// header, then the payload. PROTOCOL.md has the table. Pure: bytes in, frames out, no descriptors.
#ifndef HVD_RUNTIME_NET_FRAME_H_
#define HVD_RUNTIME_NET_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kMaxFrameBytes = 64 * 1024;
inline constexpr size_t kMaxFramePayload = kMaxFrameBytes - kFrameHeaderBytes;

enum class FrameType : uint8_t {
  kHello = 1,      // first frame of each connection; never numbered
  kHeartbeat = 2,  // carries an acknowledgement; never numbered
  kCredit = 3,     // payload: total log bytes that may be sent in the stream's life; never numbered
  kControl = 4,    // numbered
  kLog = 5,        // numbered; its payload counts against the credit
  kBulk = 6,       // numbered; its owner limits it
};

// True for frames that are numbered, acknowledged and resent after a reconnect.
constexpr bool IsNumbered(FrameType type) {
  return type == FrameType::kControl || type == FrameType::kLog || type == FrameType::kBulk;
}

struct FrameHeader {
  uint32_t payload_bytes = 0;
  FrameType type = FrameType::kHeartbeat;
  bool more = false;  // the message continues in the next frame of this type
  uint64_t job = 0;
  uint64_t generation = 0;
  uint64_t sequence = 0;  // 1, 2, ... for numbered frames of one direction; 0 for the others
  uint64_t ack = 0;       // the last number received from the other side
};

struct Frame {
  FrameHeader header;
  std::string payload;
};

// Appends header and payload to `out`; `payload` fits kMaxFramePayload.
void AppendFrame(std::string& out, const FrameHeader& header, std::string_view payload);

// Splits a byte stream into frames, however it is fragmented.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, nothing if more bytes are needed, kInvalidArgument if the bytes are no
  // frame.
  Result<std::optional<Frame>> Next();
  // Discards a partial frame, because its connection is gone.
  void Reset();

 private:
  std::string buffer_;
  size_t used_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_FRAME_H_
