// Backend: moves and combines the data of one collective, once the engine knows that all ranks
// agree about it.
//
// An operation on one rank: Prepare (when it is submitted: the backend describes this rank's part
// to the peers), Start with every rank's descriptor, then Advance again and again until it is done,
// or Abandon. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_BACKENDS_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/attendance.h"
#include "runtime/backends/collective.h"
#include "runtime/base/status.h"

namespace hvd {

// Describes one rank's part of an operation to the others. Travels inside the rank's request.
struct BufferDescriptor {
  // Only the backend knows their meaning.
  std::array<uint64_t, 4> words{};
  // Data small enough to travel with the request. Then the words have no meaning.
  std::span<const std::byte> payload;
};

// The extent of one member's part, where parts may differ: allgather, alltoall.
struct Extent {
  int64_t rows = 0;                 // of that member's input
  std::span<const int64_t> splits;  // alltoall: rows for each member of the group
};

// An operation with members on other hosts, as far as the backend needs it to agree with them.
// Valid during the call only.
//
// Each part of a grouped operation is started in turn, 0 to part_count - 1, with no other operation
// in between. A join (kJoin, on set 0) is started on every member of the host when all of them have
// joined, after everything else that became ready by it; call.root is then the index in the group
// of the member of this host that came last, and the result's `rows` becomes the world rank that
// came last of all.
// One that cannot succeed any more, because a member of the host left without joining, is started
// after everything else that this member has announced, and has to fail.
struct CrossHostRequest {
  int32_t domain = 0;  // equal names of different domains do not meet; never that of a removed set
  std::string_view name;    // of the operation
  std::string_view detail;  // as sent to a peer: equal details agree
  uint32_t part = 0, part_count = 1;
  // Not null: the members of this host disagree, with this sentence. Then part 0 of 1 is started,
  // whatever the operation has, so that it fails on all hosts alike.
  const Status* disagreement = nullptr;
  // With CollectiveCall::agreement: what this host tells the others; never empty then.
  std::string_view note;
  // Not 0: members that take part, as an Agreement told: one that has joined since is waited for.
  uint32_t participants = 0;
};

// Ranks of the world that an operation waits for.
struct AwaitedRanks {
  std::vector<uint32_t> ranks;
  bool submitted = false;  // every rank has submitted it: these are at work on it
};

// The parts of all members of this host. Indexed like Group::local; valid during the call only.
struct MemberInputs {
  std::span<const BufferDescriptor> descriptors;
  std::span<const Extent> extents;  // empty unless the collective is an allgather or an alltoall
  // Members that have joined (hvd_join): they have no data, take no part and read nothing. Empty:
  // none has. Only an allreduce or a barrier is ever started with some; DivisorOf says what divides
  // an average then.
  std::span<const uint8_t> joined;
  // Null when all members are on this host. The members of this host have agreed among themselves;
  // the backend agrees with those of the other hosts. So it decides about joined members as well:
  // any collective may be started with some.
  const CrossHostRequest* cross_host = nullptr;
};

// A backend's own state of one operation of this rank.
class OpState {
 public:
  virtual ~OpState() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // Reads the input as far as it travels with the request. `state` may stay null; all of
  // `descriptor` is written. Its payload (of any size; best the input itself) lives as long as the
  // call and the state: it may be sent much later, when the stream to the peers is full.
  virtual Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                         BufferDescriptor* descriptor) = 0;

  // True when the members may skip Prepare of such a call: where all inputs are equally large, each
  // announces its whole input as payload (of a broadcast, the root; in a barrier, nobody anything),
  // and Start without a state and without extents completes the call at once. A gathering call
  // then has an output, and no result. The answer needs no memory, and is the same for the same
  // fields.
  virtual bool IsExchange(const CollectiveCall&) const { return false; }

  // Some member of this host has not announced the operation yet, and the caller of a call with
  // `caller_waits` waits for it: may do a little of what Advance would do.
  virtual void WorkAhead(const CollectiveCall&, OpState*) {}

  // Every member of this host has announced the operation or has joined. True when the operation is
  // complete. An error that is not the same on every rank (any but kUnsupported and
  // kInvalidArgument) ends the world: the others cannot know of it.
  virtual Result<bool> Start(const CollectiveCall& call, OpState* state,
                             const MemberInputs& parts) = 0;

  // Does what can be done now, after Start returned false. True when the output is complete and the
  // input may change; after false the caller waits and calls again.
  virtual Result<bool> Advance(const CollectiveCall& call, OpState* state) = 0;

  // Null: this rank has nothing to do with other hosts now. Lives as long as the backend.
  virtual Attendance* attendance() { return nullptr; }

  // True while a started operation cannot end without something from this peer (a number in Peers),
  // which it is known not to send any more.
  virtual bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const = 0;

  // For the report of a stall: what a started operation waits for, as "for ... to ...". Empty when
  // the operation waits for its data to be moved and nothing else.
  virtual std::string Awaits(const CollectiveCall& call, const OpState* state) const = 0;
  // The same as ranks, where the backend knows them.
  virtual AwaitedRanks AwaitedBy(const CollectiveCall&, const OpState*) const { return {}; }

  // Ends the wait of a started operation for other hosts: where members there have not announced
  // it, it fails on all with this reason; otherwise it goes on to its end. Advance returns the
  // outcome.
  virtual void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) = 0;

  // The operation failed: frees what Prepare took. `peers_may_work`: some rank may have received
  // all descriptors and be at work on this rank's memory right now (the group broke), so memory
  // that peers can reach must never be used again.
  virtual void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) = 0;

  // The group has ended for this reason: every wait for members on other hosts returns, and the
  // backend sends the reason to them. From any thread.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_BACKEND_H_
