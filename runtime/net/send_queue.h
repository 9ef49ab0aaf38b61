// SendQueue: the sending half of a stream (stream.h): which frame goes to the wire next, which
// number it gets, and which ones must be kept until the other side has them. Control comes before
// all; logs go only as far as the receiver granted, and take turns with bulk.
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

// A frame without what changes whenever it is sent.
struct QueuedFrame {
  FrameType type = FrameType::kControl;
  bool more = false;  // the message goes on in the next frame of this type
  uint64_t generation = 0;
  uint64_t sequence = 0;  // 1, 2, ... in the order of the wire; 0: it was not on the wire yet
  std::string payload;    // at most kMaxFramePayload bytes
};

class SendQueue {
 public:
  // Control may be long: it is cut into frames. Empty text is a frame, too.
  void AddControl(const std::string& bytes, uint64_t generation);
  // At most kMaxFramePayload bytes.
  void AddLog(std::string bytes, uint64_t generation);
  void AddBulk(std::string bytes, uint64_t generation);

  // Gives the next frame that may go its number. Null: there is none. The frame stays here until it
  // is acknowledged; the pointer is good until the next call of anything that is not const.
  const QueuedFrame* TakeNext();
  // So many log bytes may go in the life of the stream. Less than what was allowed before changes
  // nothing.
  void AllowLogs(uint64_t bytes);
  // The other side has all frames up to this number. kInvalidArgument: that one was never sent.
  Status Acknowledge(uint64_t sequence);

  // On the wire once and not acknowledged, in the order of their numbers: sent again after a cut.
  const std::deque<QueuedFrame>& unacknowledged() const { return unacknowledged_; }
  // Logs wait for their turn or for credit.
  bool holds_logs() const { return !logs_.empty(); }
  // The other side has all control and logs; bulk that was not sent yet counts for nothing.
  bool AllAcknowledged() const {
    return unacknowledged_.empty() && control_.empty() && logs_.empty();
  }

 private:
  bool LogsMayGo() const;

  std::deque<QueuedFrame> control_, logs_, bulk_;
  bool bulk_went_last_ = false;
  std::deque<QueuedFrame> unacknowledged_;
  uint64_t next_sequence_ = 1;
  uint64_t log_sent_ = 0, log_allowed_ = 0;  // bytes in the life of the stream
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_SEND_QUEUE_H_
