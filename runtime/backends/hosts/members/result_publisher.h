// ResultPublisher: publishes the outcome of an operation to the members of a host, in the
// ResultStatus of each of its tensors, and wakes them.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_PUBLISHER_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_PUBLISHER_H_

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class ResultPublisher {
 public:
  struct Options {
    // How long to wait for a member that is in the middle of a chunk of a failed operation.
    Duration chunk_limit;
    // Wakes every sleeping rank on this host.
    std::function<void()> wake_host;
    // Whether the world of this host is broken, so that no member will finish its chunk.
    std::function<bool()> broken;
    // Whether the work with other hosts has ended, so that failures are final.
    std::function<bool()> broke_off;
  };

  // The heap outlives it.
  ResultPublisher(SharedHeap& heap, Options options) : heap_(heap), options_(std::move(options)) {}

  // From any thread that owns the operations.
  void PublishResults(std::span<const std::shared_ptr<LeaderOp>> ops);
  void PublishFailure(const LeaderOp& op, const Status& status);
  // The part fails if there is no memory. Call WakeHost after the last of several.
  void PublishAgreement(LeaderTensor& part, const AgreedPart& agreed);
  void WakeHost() const { options_.wake_host(); }

 private:
  // True when no thread works on the tensor's sum.
  bool StopSum(LeaderTensor& part, TimePoint deadline);
  void PublishResult(LeaderTensor& part);
  void Fail(LeaderTensor& part, const Status& status, TimePoint deadline);

  SharedHeap& heap_;
  const Options options_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_PUBLISHER_H_
