// InprocBackend: collectives among threads of one process, as plain as can be, for tests: the model
// that the others are checked against. Every input travels whole in its rank's request, and every
// rank computes its result for itself, in double or 64-bit integers, one element at a time.
#ifndef HVD_TEST_FAKES_INPROC_INPROC_BACKEND_H_
#define HVD_TEST_FAKES_INPROC_INPROC_BACKEND_H_

#include <memory>

#include "runtime/backends/backend.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class InprocBackend final : public Backend {
 public:
  // `heap`, for the outputs that are made here, outlives the backend.
  explicit InprocBackend(SharedHeap& heap) : heap_(heap) {}

  std::string_view name() const override { return "inproc"; }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override;
  bool IsExchange(const CollectiveCall& call) const override {
    return call.collective == Collective::kAllreduce || call.collective == Collective::kBroadcast ||
           call.collective == Collective::kBarrier;
  }
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall&, const OpState*, uint32_t) const override { return false; }
  std::string Awaits(const CollectiveCall&, const OpState*) const override { return ""; }
  void Withdraw(const CollectiveCall&, const OpState*, std::string) override {}
  void Abandon(std::unique_ptr<OpState>, bool) override {}
  void Abort(const Status&) override {}

 private:
  Result<std::byte*> OutputOf(const CollectiveCall& call, int64_t rows);
  Status Allgather(const CollectiveCall& call, const MemberInputs& parts);
  Status Alltoall(const CollectiveCall& call, const MemberInputs& parts);
  Status Reducescatter(const CollectiveCall& call, const MemberInputs& parts);

  SharedHeap& heap_;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_INPROC_INPROC_BACKEND_H_
