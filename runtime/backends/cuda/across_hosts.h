// AcrossHosts: operations on GPUs in a world of several hosts, until their data start to move. The
// hosts agree on an operation through the backend below, with notes about their GPUs; at its turn
// (agreed_turns.h) the notes determine the route: one NCCL communicator over all members, or
// through the memory of the hosts.
//
// One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_BACKENDS_CUDA_ACROSS_HOSTS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_ACROSS_HOSTS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/backends/cuda/cuda_op.h"
#include "runtime/backends/cuda/nccl_lane.h"
#include "runtime/backends/cuda/order/agreed_turns.h"

namespace hvd {

class AcrossHosts {
 public:
  // All of it outlives AcrossHosts.
  struct Around {
    Backend& host;
    SharedMemoryMap& peer_memory;
    BufferLeases& leases;
    const Clock& clock;
    // Returns the lane of the operation's members, whose GPUs are at these places.
    std::function<Result<NcclLane*>(CudaOp& op, const std::vector<uint64_t>& places)> lane;
    // Starts the operation on the staged route, for the reason in its choice.
    std::function<Status(CudaOp& op)> stage;
  };
  explicit AcrossHosts(Around around) : around_(std::move(around)) {}

  // `facts` without their control; unused if op.refusal is set.
  Status Prepare(CudaOp& op, const MemberFacts& facts, BufferDescriptor* descriptor);
  Status Start(CudaOp& op, const MemberInputs& parts);
  // True once the operation's route has begun, which is in its stage.
  Result<bool> Advance(CudaOp& op);
  // This rank abandons the operation.
  void Forget(CudaOp& op);
  // This rank no longer reads memory of the other members on the host.
  void ReturnLease(CudaOp& op);

 private:
  Result<HostNote> ReadFacts(CudaOp& op, const MemberInputs& parts);
  void AdvanceTurns();
  void Begin(AgreedTurns::Batch& batch);
  Status BeginRoute(const std::vector<CudaOp*>& ops);
  Status BeginAlike(const std::vector<CudaOp*>& ops, const std::vector<HostNote>& notes);
  Result<std::vector<HostNote>> NotesFor(CudaOp& op);

  const Around around_;
  AgreedTurns turns_;
  NcclLane* lane_ = nullptr;                                      // has the batch whose turn it is
  std::map<std::vector<uint32_t>, std::vector<HostNote>> notes_;  // the last, by ranks of the set
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_ACROSS_HOSTS_H_
