// PersistentOffer: the report of a small sum that comes again under its name, encoded once, and the
// other host's report of the same sum, as far as both agree. Between the two leaders of early
// offers (early_offer.h): the bytes are those of an OfferMessage and an EarlyOfferMessage, so a
// leader may send and receive either way.
//
// Pure; any thread, one at a time.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PERSISTENT_OFFER_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PERSISTENT_OFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/base/message_bytes.h"

namespace hvd {

class PersistentOffer {
 public:
  // `report`: of this leader, without a ticket and the sum. `coordinates`: it is the first of the
  // two, which sends early offers. `bytes`: of each host's part.
  PersistentOffer(const ReadyMessage& report, bool coordinates, size_t bytes);

  size_t message_bytes() const { return own_.size() + bytes_; }
  // As EncodeCoordination makes it of the report with this ticket and `part`, which has `bytes`
  // bytes.
  MessageBytes Encode(uint64_t ticket, const void* part) const;
  // The other leader's part, where its message says the same but for the ticket.
  std::optional<std::string_view> PartIn(std::string_view message) const;

 private:
  size_t bytes_;
  std::string own_, other_;  // the messages up to the sum, with ticket 0
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PERSISTENT_OFFER_H_
