// Early offers. When two hosts compute a small sum, the coordinator sends the part of the first
// host to the leader of the second before that has reported. If that leader's report offers as much
// to the same sum, it has all it needs and gets no answer: this message and the report cross.
//
// Leader and coordinator each determine by Completes whether a report completes the operation. Once
// the offer is sent, the first host is bound to it until the other leader has reported, or has
// declined it (RecallMessage). Pure; one thread.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_EARLY_OFFER_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_EARLY_OFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/base/status.h"

namespace hvd {

// The leader to which `report` of world rank `leader` is sent early, if any. Only between the
// coordinator's own process and the first rank of another host, which reports its neighbours'
// leaving.
std::optional<uint32_t> EarlyReceiver(const HostMap& map, uint32_t leader,
                                      const ReadyMessage& report);

// Both are about operations of one name in one process set.
bool HaveSameName(const ReadyMessage& a, const ReadyMessage& b);

// The report of the other host agrees with the early offer. `early_bytes`, `offered_bytes`: the
// sizes of the parts in them.
bool Completes(const ReadyMessage& early, size_t early_bytes, const ReadyMessage& report,
               size_t offered_bytes);

// The resulting order to the leader of `ticket`, the first of the two (0) or the second (1): a sum
// with `part` of the other. `set_size`: of the process set.
RunMessage EarlyRun(uint32_t leader, uint64_t ticket, MessageBytes part, size_t set_size);

// At the second leader: the early offer received, until it is used, void or recalled.
class KeptOffer {
 public:
  // kInternal if there is one already.
  Status Keep(ReadyMessage&& offer);
  // The coordinator recalls the offer of this ticket.
  void Drop(uint64_t ticket);
  bool empty() const { return !offer_; }
  // Whether it is for the operation of this report.
  bool IsFor(const ReadyMessage& report) const;
  // Called if IsFor, once the report is sent: the order that answers it. Nothing if the offer does
  // not fit; then it is void, which the coordinator sees, too. The arguments are those of Completes
  // and EarlyRun.
  std::optional<RunMessage> Use(const ReadyMessage& report, size_t offered_bytes, size_t set_size);

 private:
  std::optional<ReadyMessage> offer_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_EARLY_OFFER_H_
