// CoordinationLink: coordination messages to and from other processes, over an InterHostComm, and
// to this process itself. Messages longer than the InterHostComm allows are split. Used by one
// thread.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_LINK_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_LINK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

class CoordinationLink {
 public:
  using Received = std::pair<uint32_t, Coordination>;  // the sender's world rank and its message

  // `idle_limit`: the longest time for a peer to accept a piece. The InterHostComm outlives the
  // link.
  CoordinationLink(InterHostComm& comm, uint32_t rank, Duration idle_limit)
      : comm_(comm), rank_(rank), idle_limit_(idle_limit) {}

  // A message to this process itself is queued for PopLocal. Does not block if the InterHostComm
  // has steps.
  Status Send(uint32_t to, Coordination&& msg);
  // Returns when everything sent has left, or at the deadline.
  Status Flush(TimePoint deadline);
  // What InterHostComm::Receive returns for the tag of these messages.
  Result<InterHostMessage> Receive(uint32_t from, TimePoint deadline);
  // What InterHostComm::Await returns.
  Result<InterHostMessage> Await(uint32_t from, TimePoint deadline);
  // The whole message if this was its last piece; nothing if pieces are missing.
  Result<std::optional<Received>> Assemble(InterHostMessage piece);
  bool has_local() const { return !local_.empty(); }
  // The next message of this process to itself.
  std::optional<Received> PopLocal();

 private:
  Status Transmit(uint32_t to, Coordination&& msg);
  Status TransmitPiece(uint32_t to, MessageBytes piece, char mark);

  InterHostComm& comm_;
  const uint32_t rank_;
  const Duration idle_limit_;
  std::map<uint32_t, std::string> partial_;  // incomplete messages, by sender
  std::deque<Received> local_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_LINK_H_
