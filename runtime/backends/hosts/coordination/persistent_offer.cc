#include "runtime/backends/hosts/coordination/persistent_offer.h"

#include <cstring>
#include <utility>

namespace hvd {
namespace {

// The type of a message is one byte, and the ticket the first field of a report.
constexpr size_t kTicketAt = 1, kBehindTicket = kTicketAt + sizeof(uint64_t);

template <typename Message>
std::string HeadOf(const ReadyMessage& report, size_t bytes) {
  Message message{report};
  message.ready.ticket = 0;
  message.ready.sum = std::string(bytes, '\0');
  const MessageBytes encoded = EncodeCoordination(std::move(message));
  return std::string(encoded.view().substr(0, encoded.size() - bytes));
}

}  // namespace

PersistentOffer::PersistentOffer(const ReadyMessage& report, bool coordinates, size_t bytes)
    : bytes_(bytes),
      own_(HeadOf<OfferMessage>(report, bytes)),
      other_(HeadOf<EarlyOfferMessage>(report, bytes)) {
  if (coordinates) own_.swap(other_);
}

MessageBytes PersistentOffer::Encode(uint64_t ticket, const void* part) const {
  std::string message;
  message.reserve(own_.size() + bytes_ + 1);  // and a byte of the CoordinationLink
  message.append(own_).append(static_cast<const char*>(part), bytes_);
  std::memcpy(message.data() + kTicketAt, &ticket, sizeof ticket);
  return message;
}

std::optional<std::string_view> PersistentOffer::PartIn(std::string_view message) const {
  const std::string_view head = other_;
  const bool same =
      message.size() == head.size() + bytes_ &&
      message.substr(0, kTicketAt) == head.substr(0, kTicketAt) &&
      message.substr(kBehindTicket, head.size() - kBehindTicket) == head.substr(kBehindTicket);
  if (!same) return std::nullopt;
  return message.substr(head.size());
}

}  // namespace hvd
