// InterHostComm: collectives and messages between the leaders of the hosts. One leader per host;
// inside a host the ranks use shared memory.
//
// The calls block. A group's calls come from one thread at a time, and all its leaders make the
// same calls in the same order; another group may run in another thread at the same time.
// Operations that may overlap have different tags. Memory given to a call is not touched after it
// has returned, however it ended. Abort and Wake may come from any thread.
//
// A call fails with kAborted (a leader is gone, or Abort; the message says which leader, where, and
// why) or with kInProgress if the deadline of a message passed or a collective made no progress for
// longer than its idle limit. After a failed collective the group is unusable: call Abort, so that
// leaders that wait for this one through another do not wait forever.
#ifndef HVD_RUNTIME_BACKENDS_INTER_HOST_COMM_H_
#define HVD_RUNTIME_BACKENDS_INTER_HOST_COMM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/sum_copies.h"
#include "runtime/backends/sum_cut.h"
#include "runtime/base/clock.h"
#include "runtime/base/idle_limit.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/status.h"
#include "runtime/device/host_reduce.h"
#include "runtime/trace/activities.h"

namespace hvd {

// The participating leaders, by world rank, in the order of additions and gathers.
struct LeaderGroup {
  std::span<const uint32_t> leaders;
  uint32_t index = 0;  // this process in `leaders`
};

// Which operation of which group.
struct InterHostCall {
  LeaderGroup group;
  uint64_t tag = 0;
  // How long no byte may move to or from the other leaders. A collective continues as long as bytes
  // flow; without a limit it also outlasts a stopped leader.
  Duration idle_limit = kNoLimit;
  // Set to the algorithm used, if known; may be null.
  TraceAlgorithm* algorithm = nullptr;
  SumCut cut = {};  // the same for all leaders
  // For an Allreduce if CopiesByPart; null: nothing to copy.
  SumCopies* copies = nullptr;

  void ReportAlgorithm(TraceAlgorithm chosen) const {
    if (algorithm != nullptr) *algorithm = chosen;
  }
};

struct InterHostMessage {
  uint32_t from = 0;  // world rank
  std::string bytes;
};

struct InterHostSilence {
  uint32_t rank = 0;  // of the world
  Duration silent{};
};

// Totals of the link to another leader since the two connected.
struct InterHostLink {
  uint32_t rank = 0;     // of the world
  uint64_t bytes = 0;    // that have arrived there
  uint64_t busy_us = 0;  // time with bytes in flight for which the leader had room
};

inline constexpr uint32_t kAnyLeader = UINT32_MAX;
// The longest small message: 64 KiB of a sum, and the report that they travel in.
inline constexpr size_t kMaxInterHostMessage = 68 * 1024;

// A sum between leaders, advanced step by step by any thread, one at a time. Must not outlive its
// memory; once begun, it must be continued to its end or until Abort has ended it.
class InterHostSum {
 public:
  virtual ~InterHostSum() = default;
  // Continues until it is over, or returns kInProgress at the deadline; a past deadline means one
  // step without waiting. Not called again after any other result.
  virtual Status Continue(TimePoint deadline) = 0;
};

// For a thread that must not wait. Thread-safe.
class InterHostSteps {
 public:
  virtual ~InterHostSteps() = default;
  // Like InterHostComm::Send and ordered with it, but keeps the bytes until they are sent. Fails if
  // the peer is known to be lost or an earlier message could not be sent.
  virtual Status Post(uint32_t rank, uint64_t tag, MessageBytes bytes) = 0;
  // Returns when everything posted is sent, or at the deadline with kInProgress; fails if some of
  // it could not be sent.
  virtual Status Flush(TimePoint deadline) = 0;
  // Larger sums need InterHostComm::Allreduce.
  virtual size_t MostSumBytes(size_t leaders) const = 0;
  // Begins an InterHostComm::Allreduce. Other leaders may use either.
  virtual std::unique_ptr<InterHostSum> BeginSum(const InterHostCall& call, const ReduceSpec& spec,
                                                 const void* input, void* output, size_t count) = 0;
};

class InterHostComm {
 public:
  virtual ~InterHostComm() = default;

  virtual std::string_view name() const = 0;

  // `output` gets what ReduceRange would compute from all inputs in the order of the leaders, so
  // its bits depend neither on its place nor on fusion. It may be `input`; otherwise the two do not
  // overlap.
  virtual Status Allreduce(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                           void* output, size_t count) = 0;
  // `root` is an index in the group.
  virtual Status Broadcast(const InterHostCall& call, uint32_t root, void* data, size_t bytes) = 0;
  // Leader i gives bytes[i]; `output` gets all of them, concatenated. `input` may be this leader's
  // place in it.
  virtual Status Allgatherv(const InterHostCall& call, const void* input,
                            std::span<const size_t> bytes, void* output) = 0;
  // send_bytes[i] of `input` go to leader i, receive_bytes[i] of `output` come from it; pieces are
  // contiguous.
  virtual Status Alltoallv(const InterHostCall& call, const void* input,
                           std::span<const size_t> send_bytes, void* output,
                           std::span<const size_t> receive_bytes) = 0;
  // `input` holds the parts of all leaders, counts[i] elements for leader i; `output` gets the
  // combination of this leader's part, and may be that part of `input`. The other parts of `input`
  // are not changed.
  virtual Status Reducescatterv(const InterHostCall& call, const ReduceSpec& spec,
                                const void* input, std::span<const size_t> counts,
                                void* output) = 0;

  // Small messages, at most kMaxInterHostMessage bytes, in order per (sender, tag). Send returns
  // when the bytes may change; it blocks only if the peer does not read.
  virtual Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                      TimePoint deadline) = 0;
  // The next message with this tag from `rank`, or from any leader if it is kAnyLeader. kInProgress
  // at the deadline (a past one: checks once) or after Wake. With kAnyLeader a lost peer is no
  // error: only Abort ends the wait.
  virtual Result<InterHostMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) = 0;
  // The same for a thread with nothing else to do: it may poll for a while before it sleeps.
  virtual Result<InterHostMessage> Await(uint32_t rank, uint64_t tag, TimePoint deadline) {
    return Receive(rank, tag, deadline);
  }
  // Ends the current Receive or Await, or the next one, with kInProgress.
  virtual void Wake() = 0;

  // Whether Allreduce calls InterHostCall::copies. Otherwise all input must be ready before the
  // call.
  virtual bool CopiesByPart() const { return false; }

  // Null: all calls may block.
  virtual InterHostSteps* steps() { return nullptr; }

  // Leaders whose hosts do not answer probes, and for how long. The host of an idle or stopped
  // leader answers. For the launcher, which knows whether the hosts are alive.
  virtual std::vector<InterHostSilence> Silences() const = 0;

  // The links to other leaders as of about a second ago, where they are known.
  virtual std::vector<InterHostLink> Links() const { return {}; }

  // Every waiting and every later call returns `why` at once. The other leaders receive it and
  // abort as well, with the reason of the first to abort. If a leader leaves without Abort (the
  // destructor), only leaders that wait for it notice.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_INTER_HOST_COMM_H_
