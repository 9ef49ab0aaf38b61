// NcclLane: the NCCL work of the members of a process set: one communicator, one queue of the
// device, and one order of operations, which member 0 decides and publishes in its CudaCells.
//
// Member 0 makes batches of whatever is ready on it: reductions of one kind together, all else
// alone. Every member gives the batches to NCCL in that order, however it learned of the
// operations, and in the order of turns with those of its other lanes, so members cannot deadlock.
// Nothing blocks.
//
// One thread at a time, but Abort and Watch, which any thread may call. After the first error each
// call returns it.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_NCCL_LANE_H_
#define HVD_RUNTIME_BACKENDS_CUDA_NCCL_LANE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/cuda/captured_batches.h"
#include "runtime/backends/cuda/cuda_op.h"
#include "runtime/backends/cuda/order/rank_turns.h"
#include "runtime/backends/cuda/order/turn_cells.h"
#include "runtime/backends/cuda/staged_op.h"
#include "runtime/backends/nccl/fusion_buffer.h"
#include "runtime/backends/nccl/nccl_comm.h"
#include "runtime/backends/nccl/nccl_operation.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

// Whether both can be in one batch: reductions of one kind.
bool GoTogether(const CollectiveCall& a, const CollectiveCall& b);
// One operation for each stream of `ops`: the one marked last, whose mark covers the others of that
// stream.
std::vector<const CudaOp*> NewestOfEachStream(std::span<CudaOp* const> ops);

struct NcclLaneOptions {
  bool tickets = false;    // set CudaOp::given of operations
  bool registers = false;  // register memory for packing with NCCL, if possible
  size_t packing_bytes = 0;
  Duration give_limit{};  // until NCCL has given the calls of a batch to the device
  // Of the members, by index, if this one orders batches. Empty if agreements order them.
  std::vector<TurnCell*> turn_cells;
  // Aborts all lanes of this rank, this one too.
  std::function<void(const Status& why)> abort_all;
};

class NcclLane {
 public:
  // `device`: of this lane alone. All else outlives it.
  NcclLane(CudaRoom& room, RankTurns& turns, std::unique_ptr<CudaDevice> device,
           const NcclLibrary& library, KvStore& store, NcclCommOptions comm_options,
           std::function<void()> wake_peers, NcclLaneOptions options, TimePoint now);
  ~NcclLane();
  NcclLane(const NcclLane&) = delete;
  NcclLane& operator=(const NcclLane&) = delete;

  // Adds an operation that every member has announced; the lane's until it is kGiven or forgotten.
  void Add(CudaOp& op);
  // Instead of Add: the same for a batch whose order all members know. All of it can go together.
  void AddBatch(std::vector<CudaOp*> ops);
  // Whether everything it has is given to the device.
  bool idle() const { return waiting_.empty() && batches_.empty(); }
  // This rank abandons the operation: the lane is unusable afterwards, unless the operation is
  // given.
  void Forget(CudaOp& op);
  // Orders, and gives to the device, whatever is possible.
  Status Pump(TimePoint now);

  // The next batch waits for those of other lanes.
  bool awaits_turn() const;

  // Whether the device has finished the work up to the ticket.
  Result<bool> Ready(DeviceTicket ticket);

  // True while the operation waits for that member (an index in the set).
  bool Awaits(const CudaOp& op, uint32_t member) const;
  // Any thread. Waits until the device has left all kernels, so a rank's lanes must be aborted
  // together.
  void Abort(const Status& why);
  // Ok, or an error that has occurred since.
  Status Watch();

  // Requires that nothing is in flight. Call until true, or call Abort: first the device's work
  // ends, then the communicator.
  Result<bool> AdvanceClose(TimePoint now);

 private:
  struct Batch {
    std::vector<CudaOp*> ops;
    bool complete = false;  // its last operation is known
    uint64_t turn = 0;      // 0: that of an agreement, which has come

    // Whether this rank knows all of it.
    bool IsKnown() const;
  };

  Status Fail(Status why);
  Status FailToClose(Status why);
  void MakeBatches();
  void ReadOrder();
  Result<bool> MakeReady(TimePoint now);
  Status BeginBatch(const Batch& batch);
  Result<bool> GiveBatch();
  Result<NcclPlan> PlanOf(const Batch& batch);
  Result<NcclPlan> PlanReductions(const Batch& batch);
  Result<NcclPlan> PlanAdasums(const Batch& batch);
  Result<NcclPlan> PlanScatter(CudaOp& op);
  Result<NcclPlan> PlanExchange(CudaOp& op);
  Result<DeviceAddress> InputBeside(const CudaOp& op, DeviceAddress output);
  Result<NcclBuffer> Scratch(size_t bytes);
  Status FinishBatch(const Batch& batch);

  CudaRoom& room_;
  RankTurns& turns_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<NcclComm> comm_;  // never null but at the end
  const bool leads_;                // member 0, which orders batches
  const std::function<void()> wake_peers_;
  const NcclLaneOptions options_;
  NcclFusionBuffer packing_;
  CapturedBatches captured_;
  std::atomic<bool> ready_{false};
  Status failure_;
  std::vector<CudaOp*> waiting_;       // without a place in the order
  std::map<uint64_t, Batch> batches_;  // with one, not given; by number
  uint64_t next_number_ = 1;           // of the batch that member 0 makes next
  uint64_t next_given_ = 1;
  std::optional<NcclOperation> operation_;  // the batch at next_given_, once begun
  TimePoint begun_at_{};                    // that one
  CapturedBatches::Action action_ = CapturedBatches::Action::kEnqueue;  // of that batch
  NcclBuffer scratch_;                                                  // the last of:
  std::vector<DeviceAddress> scratches_;
  std::optional<DeviceTicket> last_;  // while it closes
  bool closing_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_NCCL_LANE_H_
