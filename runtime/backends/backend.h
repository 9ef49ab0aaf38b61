// Backend: moves and combines the data of one collective, once the engine knows that all ranks
// agree about it.
//
// An operation on one rank: Prepare (when it is submitted: the backend describes this rank's part
// to the peers), Start with every rank's descriptor, then Advance repeatedly until it is done, or
// Abandon. One thread at a time (the engine's lock).
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
  // Opaque to all but the backend.
  std::array<uint64_t, 4> words{};
  // Data small enough to travel with the request. Then the words are unused.
  std::span<const std::byte> payload;
};

// The extent of one member's part, where parts may differ: allgather, alltoall.
struct Extent {
  int64_t rows = 0;                 // of that member's input
  std::span<const int64_t> splits;  // alltoall: rows for each member of the group
};

// What the backend needs to agree with other hosts on an operation. Valid during the call only.
//
// Each part of a grouped operation is started in turn, 0 to part_count - 1, with no other operation
// in between. A join (kJoin, on set 0) is started on every member of the host when all of them have
// joined, after everything else that it made ready; call.root is then the index in the group of the
// last member of this host to join, and the result's `rows` becomes the world rank that joined last
// of all. A join that cannot succeed because a member of the host left without joining is started
// after everything else that this member has announced, and has to fail.
struct InterHostRequest {
  int32_t domain = 0;       // names are per domain; never that of a removed set
  std::string_view name;    // of the operation
  std::string_view detail;  // as sent to a peer: equal details agree
  uint32_t part = 0, part_count = 1;
  // Not null: the members of this host disagree, with this message. Then part 0 of 1 is started,
  // whatever the operation has, so that it fails on all hosts alike.
  const Status* disagreement = nullptr;
  // With CollectiveCall::agreement: this host's note to the others, not empty.
  std::string_view note;
  // Not 0: members that take part, from an Agreement: one that has joined since is still awaited.
  uint32_t participants = 0;
};

// Ranks of the world that an operation waits for.
struct AwaitedRanks {
  std::vector<uint32_t> ranks;
  bool submitted = false;  // every rank has submitted it; these are working on it
};

// The parts of all members of this host. Indexed like Group::local; valid during the call only.
struct MemberInputs {
  std::span<const BufferDescriptor> descriptors;
  std::span<const Extent> extents;  // empty unless the collective is an allgather or an alltoall
  // Members that have joined (hvd_join): they have no data, take no part and read nothing. Empty:
  // none has. Only an allreduce or a barrier is ever started with some; see DivisorOf for averages.
  std::span<const uint8_t> joined;
  // Null when all members are on this host. The members of this host have agreed; the backend
  // agrees with the other hosts, and so handles joined members as well: any collective may be
  // started with some.
  const InterHostRequest* inter_host = nullptr;
};

// A backend's state of one operation of this rank.
class OpState {
 public:
  virtual ~OpState() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // Reads input that travels with the request. `state` may stay null; all of `descriptor` is
  // written. Its payload (of any size; best the input itself) must stay valid as long as the call
  // and the state: it may be sent much later if the stream to the peers is full.
  virtual Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                         BufferDescriptor* descriptor) = 0;

  // True when the members may skip Prepare of such a call: if all inputs are equally large, each
  // announces its whole input as payload (in a broadcast only the root; in a barrier none), and
  // Start without a state and without extents completes the call at once. A gathering call then has
  // an output, and no result. The answer needs no memory, and is the same for the same fields.
  virtual bool IsExchange(const CollectiveCall&) const { return false; }

  // Called with `caller_waits` while some member of this host has not announced the operation yet:
  // may do a little of Advance's work.
  virtual void WorkAhead(const CollectiveCall&, OpState*) {}

  // Every member of this host has announced the operation or has joined. True when the operation is
  // complete. An error that is not the same on every rank (any but kUnsupported and
  // kInvalidArgument) ends the world, as the others cannot detect it.
  virtual Result<bool> Start(const CollectiveCall& call, OpState* state,
                             const MemberInputs& parts) = 0;

  // Does what can be done now, after Start returned false. True when the output is complete and the
  // input may change; after false the caller waits and calls again.
  virtual Result<bool> Advance(const CollectiveCall& call, OpState* state) = 0;

  // Null: no work with other hosts now. Lives as long as the backend.
  virtual Attendance* attendance() { return nullptr; }

  // True while a started operation cannot end without something from this peer (a number in Peers)
  // that it is known not to send any more.
  virtual bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const = 0;

  // For stall reports: what a started operation waits for, as "for ... to ...". Empty if it waits
  // only for its data to be moved.
  virtual std::string Awaits(const CollectiveCall& call, const OpState* state) const = 0;
  // The same as ranks, if known.
  virtual AwaitedRanks AwaitedBy(const CollectiveCall&, const OpState*) const { return {}; }

  // Ends a started operation's wait for other hosts: if members there have not announced it, it
  // fails on all with this reason; otherwise it runs to its end. Advance returns the outcome.
  virtual void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) = 0;

  // The operation failed: frees what Prepare took. `peers_may_work`: some rank may have received
  // all descriptors and be using this rank's memory right now (the group broke), so memory that
  // peers can reach must never be reused.
  virtual void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) = 0;

  // The group has ended for this reason: ends every wait for members on other hosts and sends the
  // reason to them. From any thread.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_BACKEND_H_
