// BatchExecutor: executes a batch of operations between the leaders of hosts, once the coordinator
// has ordered it.
//
// Everything is added in order of hosts, so results do not depend on fusion.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_BATCH_EXECUTOR_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_BATCH_EXECUTOR_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/backends/hosts/batch_items.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class BatchExecutor {
 public:
  struct Surroundings {
    InterHostComm& comm;
    SharedHeap& heap;
    Duration idle_limit;             // of one collective between leaders (InterHostCall)
    std::function<bool()> given_up;  // the world is broken: do not wait any more
  };

  BatchExecutor(Surroundings around, const RunMessage& msg, uint32_t rank)
      : around_(around), msg_(msg), rank_(rank) {}

  // ops[i] belongs to words.entries[i]. If ok, all results are ready to be published.
  Status Run(std::span<const std::shared_ptr<LeaderOp>> ops);

 private:
  using Items = LeaderItems;

  InterHostCall NextCall();
  // For the timeline: these items' operations do this from now on.
  static void Note(Items items, TraceActivity activity, size_t bytes);
  // One collective between the leaders, called by `run`.
  Status Exchange(Items items, Collective collective, size_t bytes,
                  const std::function<Status(const InterHostCall&)>& run);
  uint32_t leaders() const { return static_cast<uint32_t>(msg_.leaders.size()); }
  std::byte* Scratch(size_t bytes);
  Status FinishLocalSum(LeaderTensor& part);
  Status RunOne(const LeaderItem& item);
  Status Allreduce(Items items);
  Status Adasum(const LeaderItem& item);
  Status Reducescatter(const LeaderItem& item);
  Status Broadcast(const LeaderItem& item);
  Status Allgather(const LeaderItem& item);
  Status Alltoall(const LeaderItem& item);
  Status MakeResult(LeaderTensor& part, size_t table_words, size_t data_bytes, std::byte** data);

  Surroundings around_;
  const RunMessage& msg_;
  const uint32_t rank_;
  LeaderGroup group_;
  uint64_t calls_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_BATCH_EXECUTOR_H_
