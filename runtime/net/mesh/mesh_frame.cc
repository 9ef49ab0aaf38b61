#include "runtime/net/mesh/mesh_frame.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/bytes.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint32_t kFrameMagic = 0x664d7648;  // "HvMf"

}  // namespace

MeshHeader EncodeMeshHeader(const MeshFrame& frame) {
  MeshHeader header{};
  uint32_t type = static_cast<uint32_t>(frame.type);
  std::memcpy(&header[0], &kFrameMagic, 4);
  std::memcpy(&header[4], &type, 4);
  std::memcpy(&header[8], &frame.bytes, 8);
  std::memcpy(&header[16], &frame.tag.channel, 8);
  std::memcpy(&header[24], &frame.tag.slot, 8);
  std::memcpy(&header[32], &frame.number, 8);
  return header;
}

Result<MeshFrame> DecodeMeshHeader(const std::byte* bytes) {
  ByteReader reader({reinterpret_cast<const char*>(bytes), kMeshHeaderBytes});
  auto magic = reader.Get<uint32_t>();
  auto type = reader.Get<uint32_t>();
  MeshFrame frame;
  frame.bytes = reader.Get<uint64_t>();
  frame.tag.channel = reader.Get<uint64_t>();
  frame.tag.slot = reader.Get<uint64_t>();
  frame.number = reader.Get<uint64_t>();
  if (magic != kFrameMagic) return InvalidArgument("the bytes received are no frame of the mesh");
  if (type < 1 || type > 4) {
    return InvalidArgument(Format("a frame of the unknown type {}", type));
  }
  frame.type = static_cast<MeshFrameType>(type);
  size_t most = frame.type == MeshFrameType::kData  ? kMaxMeshMessage
                : frame.type == MeshFrameType::kBye ? kMaxByeBytes
                                                    : 0;
  if (frame.bytes > most) {
    return InvalidArgument(
        Format("a frame of {} payload bytes; at most {} are allowed", frame.bytes, most));
  }
  if ((frame.number == 0) != (frame.type == MeshFrameType::kReady)) {
    return InvalidArgument(Format("a frame of type {} with the number {}", type, frame.number));
  }
  return frame;
}

size_t MeshReader::Room(std::array<iovec, 2>* room) {
  if (held_) return 0;
  staging_.resize(kStagingBytes);
  size_t used = 0;
  if (left_ > 0) (*room)[used++] = {place_.to + in_window_, WindowLeft()};
  if (WindowLeft() == left_) (*room)[used++] = {staging_.data() + end_, staging_.size() - end_};
  return used;
}

Status MeshReader::Filled(size_t count) {
  const size_t direct = std::min(count, WindowLeft());
  Advance(direct);
  end_ += count - direct;
  return Parse();
}

// Of the payload, until the window has been emptied.
size_t MeshReader::WindowLeft() const { return std::min(left_, place_.window - in_window_); }

void MeshReader::Advance(size_t count) {
  if (count == 0) return;
  in_window_ += count;
  left_ -= count;
  if (place_.window == SIZE_MAX || WindowLeft() > 0) return;
  sink_.Consume(in_window_);
  in_window_ = 0;
}

Status MeshReader::Resume() {
  if (!held_) return Status::Ok();
  held_ = false;
  HVD_RETURN_IF_ERROR(BeginFrame());
  return Parse();
}

Status MeshReader::BeginFrame() {
  Result<MeshPlace> place = sink_.Begin(frame_);
  if (!place.ok()) return place.status();
  held_ = place->to == nullptr;
  if (held_) return Status::Ok();
  place_ = *place;
  in_window_ = 0;
  left_ = frame_.bytes;
  in_payload_ = true;
  return Status::Ok();
}

void MeshReader::ReadFromStaging() {
  while (size_t count = std::min(WindowLeft(), end_ - begin_)) {
    std::memcpy(place_.to + in_window_, staging_.data() + begin_, count);
    begin_ += count;
    Advance(count);
  }
}

Status MeshReader::EndIfComplete() {
  if (!in_payload_ || left_ > 0) return Status::Ok();
  in_payload_ = false;
  return sink_.End(frame_);
}

Status MeshReader::Parse() {
  while (!held_) {
    ReadFromStaging();
    HVD_RETURN_IF_ERROR(EndIfComplete());
    if (in_payload_ || end_ - begin_ < kMeshHeaderBytes) break;
    Result<MeshFrame> frame = DecodeMeshHeader(staging_.data() + begin_);
    if (!frame.ok()) return frame.status();
    begin_ += kMeshHeaderBytes;
    frame_ = *frame;
    if (Status begun = BeginFrame(); !begun.ok()) return begun;
  }
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return Status::Ok();
}

}  // namespace hvd
