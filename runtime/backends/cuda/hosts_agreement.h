// HostsAgreement: the agreement of the members' hosts on an operation on GPU memory, through the
// backend below. Moves no data. The steps are those of a Backend; one thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_HOSTS_AGREEMENT_H_
#define HVD_RUNTIME_BACKENDS_CUDA_HOSTS_AGREEMENT_H_

#include <memory>
#include <string>
#include <utility>

#include "runtime/backends/backend.h"
#include "runtime/backends/cuda/host_note.h"

namespace hvd {

class HostsAgreement {
 public:
  // `host` outlives it. `facts`: registered memory, valid as long as another member may read it.
  HostsAgreement(Backend& host, const CollectiveCall& call, const HostsFacts* facts);
  HostsAgreement(const HostsAgreement&) = delete;
  HostsAgreement& operator=(const HostsAgreement&) = delete;

  Status Prepare(BufferDescriptor* descriptor) { return host_.Prepare(call_, &state_, descriptor); }
  // `parts` as from the engine, for members on one host without the data for other hosts; `note` is
  // unused if they disagree.
  Status Start(const MemberInputs& parts, const std::string& note);
  Result<bool> Advance() { return host_.Advance(call_, state_.get()); }
  bool Needs(uint32_t peer) const { return host_.Needs(call_, state_.get(), peer); }
  std::string Awaits() const { return host_.Awaits(call_, state_.get()); }
  AwaitedRanks AwaitedBy() const { return host_.AwaitedBy(call_, state_.get()); }
  void Withdraw(std::string why) { host_.Withdraw(call_, state_.get(), std::move(why)); }
  void Abandon(bool peers_may_work) { host_.Abandon(std::move(state_), peers_may_work); }

  // After Advance returned true.
  Agreement& agreed() { return agreed_; }

 private:
  Backend& host_;
  CollectiveCall call_;
  CollectiveResult result_;
  Agreement agreed_;
  std::unique_ptr<OpState> state_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_HOSTS_AGREEMENT_H_
