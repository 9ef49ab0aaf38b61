// HostsBackend: collectives of groups that are spread over several hosts. Groups on one host are left to another backend.
//
// On each host the first member that takes part leads. The members combine what they have in shared memory, the leader's
// conductor crosses over to the other hosts, and everybody takes the result from the leader's memory. README.md has the
// picture.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_

#include <functional>
#include <memory>

#include "runtime/backends/backend.h"
#include "runtime/backends/hosts/conductor.h"
#include "runtime/backends/shm/lending.h"

namespace hvd {

class HostsBackend final : public Backend {
 public:
  struct Options {
    ConductorOptions conductor;
    // Asks the other ranks of this host to read their records soon: one of them leads and may not know it yet.
    std::function<void()> nudge_host;
  };

  // `one_host` serves groups on this host. Everything given outlives the backend.
  HostsBackend(Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory, Cross& cross,
               Options options);
  ~HostsBackend() override;

  std::string_view name() const override { return "hosts"; }
  Status Viable() const override { return Status::Ok(); }
  Abilities abilities() const override { return {.abort = true, .reform = true}; }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 Offer* offer) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const Contributions& parts) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override;
  std::string Awaits(const CollectiveCall& call, const OpState* state) const override;
  void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) override;
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override;
  void Abort(const Status& why) override { conductor_.Abort(why); }

  // Why the work with other hosts broke off; ok after a goodbye.
  Status failure() { return conductor_.failure(); }
  // This rank leaves the world. Afterwards the Cross is not used any more.
  void Leave() { conductor_.Leave(); }

 private:
  struct MemberOp;
  struct OneHostOp;

  Status LendInput(const CollectiveCall& call, MemberOp& op, Offer* offer);
  Status Follow(const CollectiveCall& call, MemberOp& op, const Contributions& parts);
  void Lead(const CollectiveCall& call, MemberOp& op, const Contributions& parts);
  Status BuildPart(const CollectiveCall& call, MemberOp& op, const Contributions& parts,
                   LeaderPart& part);
  size_t ResultBytes(const CollectiveCall& call, const MemberOp& op) const;
  Status TakeMemory(const CollectiveCall& call, MemberOp& op, LeaderPart& part);
  Result<std::vector<const void*>> InputsOf(const CollectiveCall& call, const MemberOp& op,
                                            const Contributions& parts);
  ReadyWords WordsFor(const CollectiveCall& call, const Contributions& parts) const;
  void Help(const CollectiveCall& call, MemberOp& op);
  Status ReadFailure(const MemberOp& op);
  Status TakeResult(const CollectiveCall& call, const MemberOp& op);
  void Finish(MemberOp& op);

  Backend& one_host_;
  Lending lending_;
  SharedMemoryMap& peer_memory_;
  const HostMap map_;
  const std::function<void()> nudge_host_;
  std::shared_ptr<LeaderOp> assembling_;  // its parts are being started
  Conductor conductor_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOSTS_BACKEND_H_
