// Stream: the conversation between the driver and the agent of one host, over any byte stream that
// can break and reconnect. Numbered frames arrive exactly once and in order, whatever happens to
// the connection; control overtakes unsent logs and bulk; logs are sent only within the receiver's
// credit. Bulk is data relayed for others: it takes turns with logs.
//
// Pure: no descriptors, no threads, no clock. The owner moves bytes: from the connection to
// Receive, and from Outgoing to the connection. One thread at a time.
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
  // How many log bytes the other side may have in flight to us, beyond the returned credit.
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

  // A new connection: both sides begin with a hello that says what they have received so far.
  void Attach(TimePoint now);
  // The connection is gone. Everything unacknowledged is resent after the next Attach.
  void Detach();
  bool attached() const { return attached_; }
  // True once the other side's hello was accepted on this connection.
  bool greeted() const { return greeted_; }

  void set_heartbeat(Duration heartbeat) { options_.heartbeat = heartbeat; }
  // Carried by every frame from now on.
  void set_epoch(uint64_t generation) { generation_ = generation; }

  // Queues a message. Control may be long (it is split into frames); a log or bulk piece has at
  // most kMaxFramePayload bytes.
  void SendControl(std::string bytes);
  void SendLog(std::string bytes);
  // Ordered by itself. The owner limits how much is queued here.
  void SendBulk(std::string bytes);
  // True while log pieces wait for credit or room: the owner should stop reading the workers'
  // pipes.
  bool LogsHeld() const { return queue_.holds_logs(); }

  // The bytes to write to the connection next; empty when there is nothing. Consume says how much
  // was written.
  std::string_view Outgoing();
  void Consume(size_t count);

  // Handles bytes from the connection. kInvalidArgument: the peer does not speak this protocol or
  // is out of sync; detach.
  Status Receive(std::string_view bytes, TimePoint now);
  // The next complete message, in the order it was sent.
  std::optional<StreamMessage> Next();
  // Log bytes that the owner has printed: lets the other side send as many again.
  void ReturnCredit(size_t count);

  // Acknowledges now, without waiting for something to send.
  void Acknowledge();
  // The other side has acknowledged everything; unsent bulk does not count.
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
  uint64_t acknowledged_ = 0;
  uint64_t unacknowledged_bytes_ = 0;
  uint64_t log_received_ = 0, log_returned_ = 0, log_granted_ = 0;
  std::string partial_control_, partial_log_;
  std::deque<StreamMessage> messages_;

  TimePoint last_sent_{}, last_heard_{};
  TimePoint now_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_STREAM_H_
