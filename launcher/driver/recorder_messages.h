// RecorderMessages: the messages of agents about the recorders of their ranks: records for the
// timeline, rings for the dump of a job that has failed, counters and rings for live views.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_RECORDER_MESSAGES_H_
#define HVD_LAUNCHER_DRIVER_RECORDER_MESSAGES_H_

#include <cstdint>

#include "launcher/driver/driver_parts.h"
#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

class RecorderMessages {
 public:
  // `parts` outlives this object.
  explicit RecorderMessages(DriverParts& parts) : parts_(parts) {}

  // A refusal is a sentence about "its agent", for AgentConnection::Break.
  Status Take(uint32_t host, const TraceBegun& begun);
  Status Take(uint32_t host, const TraceRecords& records);
  Status Take(uint32_t host, const CountsReply& reply);
  Status Take(uint32_t host, const RingReply& reply);
  Status Take(uint32_t host, const RingsOver& over);
  Status Take(uint32_t host, const StacksReply& reply);

 private:
  DriverParts& parts_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_RECORDER_MESSAGES_H_
