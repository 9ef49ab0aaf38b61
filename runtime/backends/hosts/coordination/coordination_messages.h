// Coordination: the messages between leaders of hosts and the coordinator, and their encoding.
// README.md describes the exchange.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_MESSAGES_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/backends/agreement.h"
#include "runtime/backends/collective.h"
#include "runtime/backends/sum_cut.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/status.h"

namespace hvd {

// ---- to the coordinator

// The size of one tensor of an operation, as needed by the other hosts to combine it.
struct PartInfo {
  // Of one host, for fusion; only if equal on all hosts.
  uint64_t bytes = 0;
  // Of the participating members on this host. Allgather: rows; alltoall: rows for each member.
  std::vector<int64_t> extents;
  bool operator==(const PartInfo&) const = default;
};

// "The members on this host are ready", or "they have failed".
struct ReadyMessage {
  uint64_t ticket = 0;  // the leader's number for it, never reused
  int32_t domain = 0;
  std::vector<uint32_t> ranks;  // of the process set; empty: the world
  Collective collective = Collective::kBarrier;
  std::string name;
  std::string detail;            // compared over the hosts
  std::vector<uint32_t> joined;  // world ranks of members here that have joined
  uint64_t fusion_key = 0;       // operations of one key may be fused; 0: never fused
  std::vector<PartInfo> parts;
  Status failure;  // not ok: why it cannot be done here
  // The two travel in an AgreeMessage. `note`: InterHostRequest::note; not empty: the hosts only
  // agree. `participants`: as there.
  std::string note;
  uint32_t participants = 0;
  // In an OfferMessage and an EarlyOfferMessage: this host's part of the sum, as exchanged by
  // leaders.
  MessageBytes sum;
};

// "Ready", with more fields.
struct AgreeMessage {
  ReadyMessage ready;
};

// "Ready, and here is the part of this host."
struct OfferMessage {
  ReadyMessage ready;
};

// "Forget my ticket: it has failed here."
struct WithdrawMessage {
  uint64_t ticket = 0;
  std::string why;
};

// "This rank has joined"; the answer is the rank that joined last.
struct JoinMessage {
  uint64_t ticket = 0;
  uint32_t last_here = 0;  // world rank that came last on this host
};

// "This rank leaves the world": sent by itself or by a rank of its host that has seen it leave.
struct LeaveMessage {
  uint32_t rank = 0;
};

// "Batch `number` is done"; sent by the first leader of a batch.
struct DoneMessage {
  uint64_t number = 0;
};

// "I do not use the early offer of this ticket": the answer to a RecallMessage. A leader that uses
// it has already reported.
struct RecalledMessage {
  uint64_t ticket = 0;
};

// ---- from the coordinator

struct RunEntry {
  uint64_t ticket = 0;
  uint32_t participants = 0;  // members of the set that take part, on all hosts
  std::vector<std::vector<int64_t>>
      extents;  // per part. Allgather: rows of each member of the set. Alltoall: for each
                // member here, rows from each member of the set
  bool operator==(const RunEntry&) const = default;
};

// "Do these, together": all leaders execute batches in the order of their numbers.
struct RunMessage {
  // 0: completed by an early offer. Nothing is exchanged, so it needs no order and no DoneMessage.
  uint64_t number = 0;
  // World ranks, in order of host. Empty: the first member on each host, as almost always; listing
  // it would make the bytes of a step quadratic in the number of hosts.
  std::vector<uint32_t> leaders;
  std::vector<RunEntry> entries;
  // The two travel in a TurnMessage. Agreement::turn of each member on this host, 0 for those that
  // have joined, and Agreement::notes. No turns: data are to be moved.
  std::vector<uint64_t> turns;
  std::vector<std::string> notes;
  SumCut cut;  // of the sums
  // In a SumsMessage: the leaders' offers, in their order; the receiver's is empty. None: the
  // leaders exchange them.
  std::vector<MessageBytes> sums;
  bool operator==(const RunMessage&) const = default;
};

// "Do this one; the other hosts' parts of it are here."
struct SumsMessage {
  RunMessage run;
};

// "Here is what the other host has offered to a sum": sent to a leader that has not reported it yet
// (early_offer.h). One at a time.
struct EarlyOfferMessage {
  ReadyMessage ready;  // of the other leader
};

// "Drop the early offer of this ticket if you have not used it, and confirm."
struct RecallMessage {
  uint64_t ticket = 0;  // of the other leader
};

// "You agree on these": there is nothing to move.
struct TurnMessage {
  RunMessage run;
};

// "This ticket has ended without data": a failure, a barrier, or the rank that joined last.
struct EndMessage {
  uint64_t ticket = 0;
  Status status;
  uint32_t last_joined = 0;
};

// "I leave; there is no coordinator any more." Also the answer to another rank's leave: it may go.
struct AbortNotice {
  std::string why;  // empty: an answer
};

// "This ticket waits for these ranks": sent once it has waited for long, and when they change.
struct WaitMessage {
  uint64_t ticket = 0;
  std::vector<uint32_t> ranks;
  bool operator==(const WaitMessage&) const = default;
};

using Coordination =
    std::variant<ReadyMessage, WithdrawMessage, JoinMessage, LeaveMessage, DoneMessage, RunMessage,
                 EndMessage, AbortNotice, WaitMessage, AgreeMessage, TurnMessage, OfferMessage,
                 SumsMessage, EarlyOfferMessage, RecallMessage, RecalledMessage>;

// The coordinator's message to the leader with this world rank.
struct CoordinationAnswer {
  uint32_t to = 0;
  Coordination msg;
};
using CoordinationAnswers = std::vector<CoordinationAnswer>;

// Room in front of a part of a sum, so that it becomes a message without being moved.
inline constexpr size_t kRoomForReport = 512;

// Neither copies the part of a sum in a message.
MessageBytes EncodeCoordination(Coordination msg);
// kInvalidArgument for anything EncodeCoordination does not write.
Result<Coordination> DecodeCoordination(MessageBytes bytes);

// What a leader writes into shared memory for the members on its host: an Agreement without the
// turn, and the turn of each of them.
struct AgreedPart {
  Agreement agreement;
  std::vector<uint64_t> turns;
};
std::string EncodeAgreed(const AgreedPart& part);
Result<AgreedPart> DecodeAgreed(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATION_MESSAGES_H_
