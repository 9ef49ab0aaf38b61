// Backend: moves and combines the data of one collective, once the engine knows that all ranks agree about it.
//
// An operation on one rank: Prepare (when it is submitted: the backend says what the peers need to know), Start with every
// rank's offer, then Advance again and again until it is done, or Abandon. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_BACKENDS_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/backends/collective.h"
#include "runtime/base/status.h"

namespace hvd {

// What one rank tells the others about its part. Travels inside its request.
struct Offer {
  std::array<uint64_t, 4> words{};  // meaning known to the backend only
  std::span<const std::byte>
      payload;  // data small enough to travel with the request; then the words are free
};

// What a backend remembers about one operation of this rank.
class OpState {
 public:
  virtual ~OpState() = default;
};

struct Abilities {
  bool abort = false;   // can leave a collective whose peer is gone
  bool reform = false;  // can serve a later epoch in the same process
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // Ok, or the sentence why this backend cannot serve the group.
  virtual Status Viable() const = 0;
  virtual Abilities abilities() const = 0;

  // Reads the input as far as it will travel. `state` may stay null. The payload of the offer lives until the next call.
  virtual Result<Offer> Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state) = 0;

  // Every rank has offered; offers[r] is rank r's, valid during this call only. True when the operation is complete.
  virtual Result<bool> Start(const CollectiveCall& call, OpState* state,
                             std::span<const Offer> offers) = 0;

  // Does what can be done now, after Start gave false. True when the output is complete and the input may change; after
  // false the caller waits and calls again.
  virtual Result<bool> Advance(const CollectiveCall& call, OpState* state) = 0;

  // True while a started operation cannot end without something from this peer, which it is known not to send any more.
  virtual bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const = 0;

  // The operation failed; gives back what Prepare took. `peers_may_work`: some rank may have seen all offers and be at
  // work on this rank's memory right now (the group broke), so what peers can reach must never be used again.
  virtual void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_BACKEND_H_
