// HostsBackend: collectives of groups on several hosts. Another backend serves groups on one host.
//
// On each host the first member that takes part leads. The members combine their inputs in shared
// memory, the leader's HostLeaderService combines the sums with the other hosts, and all members
// read the result from the leader's memory. README.md has the picture.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_

#include <functional>
#include <memory>

#include "runtime/backends/backend.h"
#include "runtime/backends/hosts/host_leader_service.h"
#include "runtime/backends/shm/buffer_leases.h"

namespace hvd {

class HostsBackend final : public Backend {
 public:
  struct Options {
    HostLeaderOptions leader_service;
    // Asks the other ranks of this host to read their records soon: one of them leads and may not
    // know yet.
    std::function<void()> nudge_host;
  };

  // `one_host` serves groups on this host. Everything given outlives the backend.
  HostsBackend(Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory,
               InterHostComm& comm, Options options);
  ~HostsBackend() override;

  std::string_view name() const override { return "hosts"; }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override;
  bool IsExchange(const CollectiveCall& call) const override {
    return call.group->on_one_host() && one_host_.IsExchange(call);
  }
  void WorkAhead(const CollectiveCall& call, OpState* state) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override;
  std::string Awaits(const CollectiveCall& call, const OpState* state) const override;
  AwaitedRanks AwaitedBy(const CollectiveCall& call, const OpState* state) const override;
  Attendance* attendance() override { return led_ == 0 ? nullptr : &leader_service_; }
  void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) override;
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override;
  void Abort(const Status& why) override { leader_service_.Abort(why); }

  // Why the work with other hosts failed; ok after a goodbye.
  Status failure() { return leader_service_.failure(); }
  // This rank leaves the world. The InterHostComm is not used afterwards.
  void Leave() { leader_service_.Leave(); }

 private:
  struct MemberOp;
  struct OneHostOp;

  Status LendInput(const CollectiveCall& call, MemberOp& op, BufferDescriptor* descriptor);
  Status Follow(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts);
  void Lead(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts);
  Status BuildPart(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts,
                   LeaderTensor& part);
  Status AllocateResult(const CollectiveCall& call, MemberOp& op, LeaderTensor& part);
  Result<std::vector<const void*>> InputsOf(const CollectiveCall& call, const MemberOp& op,
                                            const MemberInputs& parts);
  Status ReadFailure(const MemberOp& op);
  Status ReadResult(const CollectiveCall& call, const MemberOp& op);
  Result<const std::byte*> ResultMemory(const MemberOp& op);
  void Finish(MemberOp& op);

  Backend& one_host_;
  BufferLeases leases_;
  SharedMemoryMap& peer_memory_;
  const HostMap map_;
  const std::function<void()> nudge_host_;
  LastHostParts last_parts_;
  uint32_t led_ = 0;                      // operations led here in progress
  std::shared_ptr<LeaderOp> assembling_;  // its parts are being started
  HostLeaderService leader_service_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_
