// SendQueue: the sending half of a stream (stream.h): which frame is sent next, its number, and
// which must be kept until the other side has them. Control goes first; logs go within the
// receiver's credit and take turns with bulk.
//
// Pure: no descriptors, no threads, no clock. One thread at a time.
#ifndef HVD_RUNTIME_NET_SEND_QUEUE_H_
#define HVD_RUNTIME_NET_SEND_QUEUE_H_

#include <cstdint>
#include <deque>
#include <string>

#include "runtime/base/status.h"
#include "runtime/net/frame.h"

namespace hvd {

// A frame without the fields that differ each time it is sent.
struct QueuedFrame {
  FrameType type = FrameType::kControl;
  bool more = false;  // the message continues in the next frame of this type
  uint64_t generation = 0;
  uint64_t sequence = 0;  // 1, 2, ... in sending order; 0: not sent yet
  std::string payload;    // at most kMaxFramePayload bytes
};

class SendQueue {
 public:
  // Control may be long: it is split into frames. Empty text is a frame, too.
  void AddControl(const std::string& bytes, uint64_t generation);
  // At most kMaxFramePayload bytes.
  void AddLog(std::string bytes, uint64_t generation);
  void AddBulk(std::string bytes, uint64_t generation);

  // Numbers and returns the next frame that may be sent. Null: none. The frame stays here until it
  // is acknowledged; the pointer is valid until the next non-const call.
  const QueuedFrame* NextToSend();
  // The total log bytes that may be sent in the stream's life. Less than the previous limit changes
  // nothing.
  void AllowLogs(uint64_t bytes);
  // The other side has all frames up to this number. kInvalidArgument: it was never sent.
  Status Acknowledge(uint64_t sequence);

  // Sent and not acknowledged, in order of numbers: resent after a reconnect.
  const std::deque<QueuedFrame>& unacknowledged() const { return unacknowledged_; }
  // Logs wait for their turn or for credit.
  bool holds_logs() const { return !logs_.empty(); }
  // The other side has all control and logs; unsent bulk does not count.
  bool AllAcknowledged() const {
    return unacknowledged_.empty() && control_.empty() && logs_.empty();
  }

 private:
  bool LogsMayGo() const;

  std::deque<QueuedFrame> control_, logs_, bulk_;
  bool bulk_went_last_ = false;
  std::deque<QueuedFrame> unacknowledged_;
  uint64_t next_sequence_ = 1;
  uint64_t log_sent_ = 0, log_allowed_ = 0;  // total bytes in the stream's life
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_SEND_QUEUE_H_
