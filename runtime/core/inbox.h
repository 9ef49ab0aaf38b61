// Inbox: reads what the other ranks of this host announce, checks it, and enters it into the rounds
// of the names.
//
// A message that this rank cannot use yet stays in the stream of its sender, and everything behind
// it too. README.md says why that is no deadlock. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_INBOX_H_
#define HVD_RUNTIME_CORE_INBOX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backends/peers.h"
#include "runtime/base/status.h"
#include "runtime/core/request/message.h"
#include "runtime/core/request/process_set.h"
#include "runtime/core/state/joins.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/rounds.h"

namespace hvd {

class Inbox {
 public:
  enum class Event : uint8_t {
    kNone,       // no message, or one that has to wait
    kAnnounced,  // `member` has announced a round of `name`
    kFailed,     // failure() says why the world ends
  };
  struct Arrival {
    TensorName* name = nullptr;
    uint32_t member = 0;  // index in name->set->group.local
    Event event = Event::kNone;
  };

  Inbox(Peers& peers, NameTable& names, const ProcessSetTable& sets, const Joins& joins,
        const Rounds& rounds)
      : peers_(peers),
        names_(names),
        sets_(sets),
        joins_(joins),
        rounds_(rounds),
        assemblies_(peers.size()) {}

  // Reads messages of the peer up to the first announcement for this rank. The announced payloads
  // lie in the message: valid until Consume, unless KeepPayloads copies them.
  Arrival Next(uint32_t peer);
  // Gives the message of an announcement back to the peer.
  void Consume(uint32_t peer);
  // Copies the payloads that the member announced last, so that they outlive the message.
  static void KeepPayloads(TensorName* name, uint32_t member);

  // The next message of the peer, which stays where it is.
  enum class Sight : uint8_t {
    kNothing,   // there is none
    kExpected,  // announces a round of the name by nothing but a payload of so many bytes
    kOther,
  };
  // *payload is valid until Consume.
  Sight LookFor(uint32_t peer, const TensorName& name, size_t payload_bytes,
                std::span<const std::byte>* payload);

  // Consumes everything that the peer has sent, unread.
  void Drain(uint32_t peer);
  // True when no message of the peer is left, not even one that waits.
  bool empty(uint32_t peer);

  // After kFailed: kAborted with the reason that the peer sent, or kInternal with the damage found.
  const Status& failure() const { return failure_; }

 private:
  // Of one record or one assembled message. kWait: it stays; kPiece: a message grew by it.
  enum class Reading : uint8_t { kWait, kIgnore, kPiece, kAnnounced, kFailed };

  Reading ReadNext(uint32_t peer, Arrival* arrival);
  Reading ReadPiece(uint32_t peer, std::span<const std::byte> record);
  Reading ReadRequest(uint32_t peer, std::span<const std::byte> message, Arrival* arrival);
  Reading Define(uint32_t peer, const IncomingRequest& request);
  Reading Enter(uint32_t peer, const IncomingRequest& request, Arrival* arrival);
  Reading Damaged(uint32_t peer, const Status& what);

  Peers& peers_;
  NameTable& names_;
  const ProcessSetTable& sets_;
  const Joins& joins_;
  const Rounds& rounds_;
  std::vector<Assembly> assemblies_;  // per peer
  Status failure_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_INBOX_H_
