// CapturedBatches: recurring batches of a lane, each kept as a CUDA graph that one call launches.
// The first time a batch is given directly, the second time captured and launched, then only
// launched. All members have the same batches, with the same keys, in the same order, so they
// choose alike, as NCCL demands.
//
// Drop from any thread: NCCL ends no communicator while a graph has calls of it. All else from the
// lane's thread.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CAPTURED_BATCHES_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CAPTURED_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

// A number for each allreduce of this rank on the world, equal if everything is the same as before,
// including the addresses of its tensors. Different calls never share one, so the numbers of all
// members tell whether all repeat a call exactly. One thread.
class CallNumbers {
 public:
  // From 1 on; 0: the call has none.
  uint32_t NumberOf(const CollectiveCall& call) {
    if (call.collective != Collective::kAllreduce || call.group->id != 0) return 0;
    if (last_ == std::numeric_limits<uint32_t>::max()) return 0;
    if (numbers_.size() >= kMost) numbers_.clear();  // recurring calls get new numbers
    uint32_t& number = numbers_[{call.op, call.dtype, call.count, call.prescale, call.postscale,
                                 call.input, call.output, call.device_index}];
    if (number == 0) number = ++last_;
    return number;
  }

 private:
  static constexpr size_t kMost = 4096;

  std::map<std::tuple<ReduceOp, DType, size_t, double, double, const void*, const void*, int32_t>,
           uint32_t>
      numbers_;
  uint32_t last_ = 0;
};

class CapturedBatches {
 public:
  enum class Action { kEnqueue, kCapture, kLaunch };
  // The numbers of a batch's calls on all members: equal keys are equal work. Empty: not kept.
  using Key = std::vector<uint32_t>;

  static constexpr size_t kMostKeys = 1024, kMostGraphs = 64;

  explicit CapturedBatches(CudaDevice& device) : device_(device) {}
  ~CapturedBatches();
  CapturedBatches(const CapturedBatches&) = delete;
  CapturedBatches& operator=(const CapturedBatches&) = delete;

  // Chooses what to do with the next batch, to which Begin and Launch apply.
  Action Choose(const Key& key);
  // kCapture: between these two, the queue is given the batch. LaunchCaptured really does it.
  // Begin until it gives true.
  Result<bool> Begin();
  Status LaunchCaptured();
  // kLaunch.
  Status Launch();

  // Keeps nothing any more; every later call returns the first `why`. Launched work continues.
  void Drop(const Status& why);

 private:
  struct Entry {
    uint64_t used = 0;  // by Choose, the last time
    bool kept = false;
    std::unique_ptr<CudaGraph> graph;  // null until it is captured
  };

  // Evicts the least recently used entry: of all, or of those kept.
  void MakeRoom(bool kept) HVD_REQUIRES(mutex_);
  Status LaunchCurrent() HVD_REQUIRES(mutex_);

  CudaDevice& device_;
  Mutex mutex_;
  std::map<Key, Entry> entries_ HVD_GUARDED_BY(mutex_);
  Entry* current_ HVD_GUARDED_BY(mutex_) = nullptr;
  uint64_t choices_ HVD_GUARDED_BY(mutex_) = 0;
  size_t kept_ HVD_GUARDED_BY(mutex_) = 0;
  bool capturing_ HVD_GUARDED_BY(mutex_) = false;
  Status dropped_ HVD_GUARDED_BY(mutex_);  // why
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CAPTURED_BATCHES_H_
