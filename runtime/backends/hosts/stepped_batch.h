// SteppedBatch: a batch that is one sum, executed step by step, so that a thread waiting for its
// result can do it and still check for other work between steps. The inter-host thread continues
// where that thread stopped. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_STEPPED_BATCH_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_STEPPED_BATCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "runtime/backends/hosts/batch_items.h"
#include "runtime/backends/hosts/leader_sum.h"
#include "runtime/backends/hosts/negotiator.h"
#include "runtime/backends/inter_host_comm.h"

namespace hvd {

class SteppedBatch {
 public:
  // False: it needs a BatchExecutor.
  static bool Fits(const LeaderBatch& batch, InterHostComm& comm);

  // A batch that fits. The InterHostComm outlives it.
  SteppedBatch(LeaderBatch batch, InterHostComm& comm, uint32_t rank);

  // kInProgress: not over at the deadline (a past one: one step). The outcome is kept.
  Status Continue(TimePoint deadline);
  // Runs to the end. `given_up`: the world is broken, do not wait any more.
  Status Finish(const std::function<bool()>& given_up);
  bool failed() const { return over_ && !outcome_.ok(); }
  const LeaderBatch& batch() const { return batch_; }

 private:
  Status Step(TimePoint deadline);
  Status Begin();

  const LeaderBatch batch_;
  InterHostComm& comm_;
  const uint32_t rank_;
  const std::vector<LeaderItem> items_;
  LeaderSum sum_;
  std::unique_ptr<std::byte[]> packed_;
  TraceAlgorithm algorithm_ = TraceAlgorithm::kUnknown;
  std::unique_ptr<InterHostSum> exchange_;  // gone before the memory it uses
  bool over_ = false;
  Status outcome_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_STEPPED_BATCH_H_
