// PersistentSum: a small sum of the only ranks of two hosts that comes again under its name. Each
// time costs one message each way, and neither side makes an operation of it or decodes a report
// (HostLeaderService::RunPersistent). Immutable; any thread.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_PERSISTENT_SUM_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_PERSISTENT_SUM_H_

#include <cstddef>
#include <string_view>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/persistent_offer.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/device/host_reduce.h"

namespace hvd {

class PersistentSum {
 public:
  // `report`: what this leader says of the call, whose group has these two ranks; `rank`: of the
  // world.
  PersistentSum(const CollectiveCall& call, const ReadyMessage& report, uint32_t rank);
  // A longer one travels otherwise.
  bool FitsOneMessage() const { return offer_.message_bytes() < kMaxInterHostMessage; }

  const PersistentOffer& offer() const { return offer_; }
  // The parts of both hosts, in their order.
  void Add(const void* own, std::string_view other, void* output) const;

 private:
  const PersistentOffer offer_;
  const ReduceSpec spec_;
  const size_t count_;
  const bool first_;  // in the order of hosts
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_PERSISTENT_SUM_H_
