// Stream: the conversation between the driver and the agent of one host, over any byte stream that
// can break and come back. Numbered frames arrive exactly once and in order, whatever happens to
// the connection; control overtakes logs and bulk that were not sent yet; logs are sent only as far
// as the receiver granted credit. Bulk is data passed on for others (relayed data): it takes turns
// with logs.
//
// Pure: no descriptors, no threads, no clock. The owner moves bytes: those that the connection
// delivers go into Receive, those that Outgoing shows go out. One thread at a time.
#ifndef HVD_RUNTIME_NET_STREAM_H_
#define HVD_RUNTIME_NET_STREAM_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/frame.h"
#include "runtime/net/send_queue.h"

namespace hvd {

inline constexpr uint32_t kStreamVersion = 2;

struct StreamOptions {
  uint64_t job = 0;
  // How many log bytes the other side may have on the way to us, beyond what we returned.
  uint64_t log_window_bytes = 1024 * 1024;
  Duration heartbeat = std::chrono::seconds(2);
};

struct StreamMessage {
  bool log = false;
  uint64_t generation = 0;  // the sender's generation when it sent the message
  std::string bytes;
};

class Stream {
 public:
  static constexpr size_t kMaxMessageBytes = 64 * 1024 * 1024;

  explicit Stream(StreamOptions options) : options_(options) {}

  // A fresh connection: both sides begin with a hello that says what they have received so far.
  void Attach(TimePoint now);
  // The connection is gone. All that was not acknowledged is sent again after the next Attach.
  void Detach();
  bool attached() const { return attached_; }
  // True once the other side's hello was accepted on this connection.
  bool greeted() const { return greeted_; }

  void set_heartbeat(Duration heartbeat) { options_.heartbeat = heartbeat; }
  // Carried by every frame from now on.
  void set_epoch(uint64_t generation) { generation_ = generation; }

  // Queues a message. Control may be long (it is cut into frames); a log or bulk piece has at most
  // kMaxFramePayload bytes.
  void SendControl(std::string bytes);
  void SendLog(std::string bytes);
  // Keeps its own order. How much of it waits here is up to the owner.
  void SendBulk(std::string bytes);
  // True while log pieces wait for credit or room: the owner should read no more from the workers'
  // pipes.
  bool LogsHeld() const { return queue_.holds_logs(); }

  // The bytes to write to the connection next; empty when there is nothing. Consume says how much
  // was written.
  std::string_view Outgoing();
  void Consume(size_t count);

  // Bytes from the connection. kInvalidArgument: the peer does not speak this protocol or lost its
  // place; detach.
  Status Receive(std::string_view bytes, TimePoint now);
  // The next complete message, in the order it was sent.
  std::optional<StreamMessage> Next();
  // Log bytes the owner is done with (printed): lets the other side send as many again.
  void ReturnCredit(size_t count);

  // Says now what was received, without waiting for something to send.
  void Acknowledge();
  // Everything that was sent has arrived on the other side, as far as it told us; bulk that was not
  // sent yet counts for nothing.
  bool AllAcknowledged() const { return queue_.AllAcknowledged(); }

  // Sends a heartbeat when one is due. Call at NextTick() or later.
  void Tick(TimePoint now);
  TimePoint NextTick() const { return last_sent_ + options_.heartbeat; }
  // When the other side was last heard.
  TimePoint last_heard() const { return last_heard_; }

 private:
  FrameHeader HeaderOf(const QueuedFrame& frame) const;
  void Put(FrameType type, std::string_view payload);
  void PutNumbered(const QueuedFrame& frame);
  void PutHello();
  Status Handle(Frame frame);
  Status HandleHello(const Frame& frame);
  Status HandleNumbered(Frame frame);

  StreamOptions options_;
  bool attached_ = false, greeted_ = false;
  uint64_t generation_ = 0;

  // Sending.
  SendQueue queue_;
  std::string wire_;  // frames ready for the connection
  size_t wire_used_ = 0;

  // Receiving.
  FrameReader reader_;
  uint64_t received_ = 0;
  uint64_t said_ack_ = 0;
  uint64_t unsaid_bytes_ = 0;
  uint64_t log_received_ = 0, log_returned_ = 0, log_granted_ = 0;
  std::string partial_control_, partial_log_;
  std::deque<StreamMessage> messages_;

  TimePoint last_sent_{}, last_heard_{};
  TimePoint now_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_STREAM_H_
