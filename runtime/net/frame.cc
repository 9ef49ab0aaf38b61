#include "runtime/net/frame.h"

#include "runtime/base/bytes.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint8_t kMoreFlag = 1;
constexpr uint16_t kFrameMagic = 0x7648;  // "Hv"
constexpr size_t kCompactAfter = 256 * 1024;

FrameHeader ReadHeader(std::string_view bytes, uint16_t* magic, uint8_t* flags) {
  ByteReader reader(bytes);
  FrameHeader header;
  header.payload_bytes = reader.Get<uint32_t>();
  *magic = reader.Get<uint16_t>();
  header.type = reader.Get<FrameType>();
  *flags = reader.Get<uint8_t>();
  header.more = (*flags & kMoreFlag) != 0;
  header.job = reader.Get<uint64_t>();
  header.generation = reader.Get<uint64_t>();
  header.sequence = reader.Get<uint64_t>();
  header.ack = reader.Get<uint64_t>();
  return header;
}

Status CheckHeader(const FrameHeader& header, uint16_t magic, uint8_t flags) {
  if (magic != kFrameMagic) return InvalidArgument("the bytes received are no frame of hvdrun");
  if (header.payload_bytes > kMaxFramePayload) {
    return InvalidArgument(Format("a frame of {} payload bytes; at most {} are allowed",
                                  header.payload_bytes, kMaxFramePayload));
  }
  if (header.type < FrameType::kHello || header.type > FrameType::kBulk) {
    return InvalidArgument(Format("a frame of the unknown type {}", static_cast<int>(header.type)));
  }
  if ((flags & ~kMoreFlag) != 0) return InvalidArgument("a frame with unknown flags");
  if (IsNumbered(header.type) != (header.sequence != 0)) {
    return InvalidArgument("a frame whose number does not fit its type");
  }
  return Status::Ok();
}

}  // namespace

void AppendFrame(std::string& out, const FrameHeader& header, std::string_view payload) {
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(payload.size())).Put(kFrameMagic).Put(header.type);
  writer.Put(header.more ? kMoreFlag : uint8_t{0});
  writer.Put(header.job).Put(header.generation).Put(header.sequence).Put(header.ack);
  out.append(writer.Take());
  out.append(payload);
}

Result<std::optional<Frame>> FrameReader::Next() {
  std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.size() < kFrameHeaderBytes) return std::optional<Frame>();
  uint16_t magic = 0;
  uint8_t flags = 0;
  FrameHeader header = ReadHeader(rest.substr(0, kFrameHeaderBytes), &magic, &flags);
  HVD_RETURN_IF_ERROR(CheckHeader(header, magic, flags));
  if (rest.size() < kFrameHeaderBytes + header.payload_bytes) return std::optional<Frame>();
  Frame frame{header, std::string(rest.substr(kFrameHeaderBytes, header.payload_bytes))};
  used_ += kFrameHeaderBytes + header.payload_bytes;
  if (used_ == buffer_.size() || used_ > kCompactAfter) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

void FrameReader::Reset() {
  buffer_.clear();
  used_ = 0;
}

}  // namespace hvd
