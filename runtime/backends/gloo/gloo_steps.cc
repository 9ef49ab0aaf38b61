#include "runtime/backends/gloo/gloo_steps.h"

#include <span>
#include <utility>

#include "runtime/backends/gloo/allreduce_algorithm.h"
#include "runtime/backends/gloo/direct.h"
#include "runtime/backends/gloo/large_sum.h"
#include "runtime/backends/gloo/small_messages.h"

namespace hvd {

Status GlooSteps::Post(uint32_t rank, uint64_t tag, MessageBytes bytes) {
  HVD_RETURN_IF_ERROR(CheckMessage(bytes.size()));
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(DropGone());
  auto posted = std::make_unique<Posted>();
  posted->bytes = std::move(bytes);
  Status sent = mesh_.SendNow(rank, {tag, kMessageSlot},
                              std::as_bytes(std::span(posted->bytes.view())), &posted->handle);
  if (sent.code() != Code::kInProgress) return sent;
  posted_.push_back(std::move(posted));
  return Status::Ok();
}

// Also where a later one has gone before an earlier one to another peer.
Status GlooSteps::DropGone() {
  for (auto at = posted_.begin(); at != posted_.end();) {
    if (!mesh_.IsOver((*at)->handle)) {
      ++at;
      continue;
    }
    Status gone = mesh_.Wait((*at)->handle, TimePoint{});
    at = posted_.erase(at);
    if (!gone.ok()) return gone;
  }
  return Status::Ok();
}

Status GlooSteps::Flush(TimePoint deadline) {
  for (;;) {
    MutexLock lock(mutex_);
    HVD_RETURN_IF_ERROR(DropGone());
    if (posted_.empty()) return Status::Ok();
    Status gone = mesh_.Wait(posted_.front()->handle, deadline);
    if (!gone.ok()) return gone;
  }
}

std::unique_ptr<InterHostSum> GlooSteps::BeginSum(const InterHostCall& call, const ReduceSpec& spec,
                                                  const void* input, void* output, size_t count) {
  const AllreduceAlgorithm algorithm =
      ChooseAllreduce(count * SizeOf(spec.dtype), call.group.leaders.size());
  const auto begin =
      algorithm == AllreduceAlgorithm::kSliced ? BeginSlicedAllreduce : BeginDirectAllreduce;
  return begin(mesh_, scratch_, call, spec, input, output, count);
}

}  // namespace hvd
