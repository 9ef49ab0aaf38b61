// Inbox: reads and checks the announcements of the other ranks of this host and enters them into
// the rounds of the names.
//
// A message that this rank cannot use yet stays in its sender's stream and blocks those behind it.
// AGREEMENT.md says why that cannot deadlock. One thread at a time (the engine's lock).
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
    kNone,       // no message, or one that must wait
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
  // Releases the message of an announcement to the peer.
  void Consume(uint32_t peer);
  // Copies the payloads of the member's last announcement so that they outlive the message.
  static void KeepPayloads(TensorName* name, uint32_t member);

  // The kind of the peer's next message, which is not consumed.
  enum class NextMessage : uint8_t {
    kNothing,   // no message
    kExpected,  // announces a round of the name with only a payload of the given size
    kOther,
  };
  // *payload is valid until Consume.
  NextMessage PeekFor(uint32_t peer, const TensorName& name, size_t payload_bytes,
                      std::span<const std::byte>* payload);

  // Discards everything that the peer has sent.
  void Drain(uint32_t peer);
  // True if no message of the peer is left, not even one that must wait.
  bool empty(uint32_t peer);

  // After kFailed: kAborted with the peer's reason, or kInternal describing a malformed message.
  const Status& failure() const { return failure_; }

 private:
  // Result of one record or one assembled message. kWait: it stays; kPiece: appended to a message.
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
