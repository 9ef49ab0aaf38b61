// ResultPublisher: tells the members of a host what became of an operation, by the ResultStatus of
// each of its tensors, and wakes them.
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
    // Wakes every rank on this host that sleeps.
    std::function<void()> wake_host;
    // The world of this host is broken, so that no member finishes its chunk any more.
    std::function<bool()> broken;
    // The work with other hosts has ended, so that failures are the end of it.
    std::function<bool()> broke_off;
  };

  // The heap outlives it.
  ResultPublisher(SharedHeap& heap, Options options) : heap_(heap), options_(std::move(options)) {}

  // Any thread that owns the operations.
  void PublishResults(std::span<const std::shared_ptr<LeaderOp>> ops);
  void PublishFailure(const LeaderOp& op, const Status& status);
  // Without memory the part fails. After the last of several, WakeHost.
  void PublishAgreement(LeaderTensor& part, const AgreedPart& agreed);
  void WakeHost() const { options_.wake_host(); }

 private:
  // True when no thread works on the tensor's sum any more.
  bool StopSum(LeaderTensor& part, TimePoint deadline);
  void PublishResult(LeaderTensor& part);
  void Fail(LeaderTensor& part, const Status& status, TimePoint deadline);

  SharedHeap& heap_;
  const Options options_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_PUBLISHER_H_
