#include "runtime/net/stream.h"

#include <algorithm>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Frames are numbered only when they are written to the connection; with few of them in flight,
// control overtakes waiting logs.
constexpr size_t kWireBytes = 128 * 1024;
// The sender keeps unacknowledged frames, so the receiver acknowledges at the latest after this
// many bytes.
constexpr uint64_t kAckAfterBytes = 256 * 1024;

}  // namespace

void Stream::Attach(TimePoint now) {
  Detach();
  attached_ = true;
  now_ = last_heard_ = last_sent_ = now;
  PutHello();
}

void Stream::Detach() {
  attached_ = greeted_ = false;
  wire_.clear();
  wire_used_ = 0;
  reader_.Reset();
}

void Stream::SendControl(std::string bytes) { queue_.AddControl(bytes, generation_); }

void Stream::SendLog(std::string bytes) { queue_.AddLog(std::move(bytes), generation_); }

void Stream::SendBulk(std::string bytes) { queue_.AddBulk(std::move(bytes), generation_); }

FrameHeader Stream::HeaderOf(const QueuedFrame& frame) const {
  FrameHeader header;
  header.type = frame.type;
  header.more = frame.more;
  header.job = options_.job;
  header.generation = frame.generation;
  header.sequence = frame.sequence;
  header.ack = received_;
  return header;
}

void Stream::Put(FrameType type, std::string_view payload) {
  AppendFrame(wire_, HeaderOf({type, false, generation_, 0, {}}), payload);
  acknowledged_ = received_;
  unacknowledged_bytes_ = 0;
  last_sent_ = now_;
}

void Stream::PutNumbered(const QueuedFrame& frame) {
  AppendFrame(wire_, HeaderOf(frame), frame.payload);
  acknowledged_ = received_;
  unacknowledged_bytes_ = 0;
  last_sent_ = now_;
}

void Stream::PutHello() {
  log_granted_ = log_returned_ + options_.log_window_bytes;
  ByteWriter writer;
  writer.Put(kStreamVersion).Put(log_granted_);
  Put(FrameType::kHello, writer.Take());
}

std::string_view Stream::Outgoing() {
  if (!attached_) return {};
  while (greeted_ && wire_.size() - wire_used_ < kWireBytes) {
    const QueuedFrame* frame = queue_.NextToSend();
    if (frame == nullptr) break;
    PutNumbered(*frame);
  }
  return std::string_view(wire_).substr(wire_used_);
}

void Stream::Consume(size_t count) {
  wire_used_ += std::min(count, wire_.size() - wire_used_);
  if (wire_used_ < wire_.size() && wire_used_ < kWireBytes) return;
  wire_.erase(0, wire_used_);
  wire_used_ = 0;
}

Status Stream::Receive(std::string_view bytes, TimePoint now) {
  now_ = last_heard_ = now;
  reader_.Append(bytes);
  while (true) {
    Result<std::optional<Frame>> next = reader_.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) return Status::Ok();
    if (Status status = Handle(std::move(**next)); !status.ok()) return status;
  }
}

Status Stream::Handle(Frame frame) {
  if (frame.header.job != options_.job) {
    return InvalidArgument("the other end of the stream belongs to another job");
  }
  if (frame.header.type == FrameType::kHello) return HandleHello(frame);
  if (!greeted_) return InvalidArgument("a frame before the hello");
  HVD_RETURN_IF_ERROR(queue_.Acknowledge(frame.header.ack));
  if (frame.header.type == FrameType::kHeartbeat) return Status::Ok();
  if (frame.header.type == FrameType::kCredit) {
    ByteReader reader(frame.payload);
    auto allowed = reader.Get<uint64_t>();
    if (!reader.AtEnd()) return InvalidArgument("a credit frame of a wrong length");
    queue_.AllowLogs(allowed);
    return Status::Ok();
  }
  return HandleNumbered(std::move(frame));
}

Status Stream::HandleHello(const Frame& frame) {
  if (greeted_) return InvalidArgument("a second hello on one connection");
  ByteReader reader(frame.payload);
  auto version = reader.Get<uint32_t>();
  auto allowed = reader.Get<uint64_t>();
  if (!reader.AtEnd()) return InvalidArgument("a hello of a wrong length");
  if (version != kStreamVersion) {
    return InvalidArgument(
        Format("the other end speaks version {} of the stream protocol, this end version {}; use "
               "one release on all hosts",
               version, kStreamVersion));
  }
  HVD_RETURN_IF_ERROR(queue_.Acknowledge(frame.header.ack));
  queue_.AllowLogs(allowed);
  greeted_ = true;
  for (const QueuedFrame& kept : queue_.unacknowledged()) PutNumbered(kept);
  return Status::Ok();
}

Status Stream::HandleNumbered(Frame frame) {
  const FrameHeader& header = frame.header;
  if (header.sequence <= received_) return Status::Ok();  // resent, but it had arrived
  if (header.sequence != received_ + 1) return InvalidArgument("frames are missing in the stream");
  received_ = header.sequence;
  unacknowledged_bytes_ += frame.payload.size();
  bool log = header.type == FrameType::kLog;
  if (log) {
    log_received_ += frame.payload.size();
    if (log_received_ > log_granted_) return InvalidArgument("more log bytes than were granted");
  }
  bool bulk = header.type == FrameType::kBulk;
  if (bulk && header.more) return InvalidArgument("a bulk message of more than one frame");
  if (bulk || (!header.more && (log ? partial_log_ : partial_control_).empty())) {
    messages_.push_back({log, header.generation, std::move(frame.payload)});
    if (unacknowledged_bytes_ >= kAckAfterBytes) Acknowledge();
    return Status::Ok();
  }
  std::string& partial = log ? partial_log_ : partial_control_;
  if (partial.size() + frame.payload.size() > kMaxMessageBytes) {
    return InvalidArgument("a message of more than 64 MiB");
  }
  partial += frame.payload;
  if (!header.more) messages_.push_back({log, header.generation, std::exchange(partial, {})});
  if (unacknowledged_bytes_ >= kAckAfterBytes) Acknowledge();
  return Status::Ok();
}

std::optional<StreamMessage> Stream::Next() {
  if (messages_.empty()) return std::nullopt;
  StreamMessage message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void Stream::ReturnCredit(size_t count) {
  log_returned_ += count;
  uint64_t grant = log_returned_ + options_.log_window_bytes;
  // Every grant is a frame; granting a quarter of the window at a time keeps them few.
  if (!greeted_ || grant - log_granted_ < options_.log_window_bytes / 4) return;
  log_granted_ = grant;
  ByteWriter writer;
  writer.Put(log_granted_);
  Put(FrameType::kCredit, writer.Take());
}

void Stream::Acknowledge() {
  if (attached_ && acknowledged_ != received_) Put(FrameType::kHeartbeat, {});
}

void Stream::Tick(TimePoint now) {
  now_ = now;
  if (now < NextTick()) return;
  last_sent_ = now;  // also without a connection: the next tick is later
  if (attached_) Put(FrameType::kHeartbeat, {});
}

}  // namespace hvd
