#include "runtime/backends/hosts/members/result_publisher.h"

#include <sched.h>

#include <cstring>

#include "runtime/base/idle_limit.h"

namespace hvd {

void ResultPublisher::PublishResults(std::span<const std::shared_ptr<LeaderOp>> ops) {
  for (const auto& op : ops) {
    for (const auto& part : op->parts) PublishResult(*part);
  }
  options_.wake_host();
}

void ResultPublisher::PublishResult(LeaderTensor& part) {
  ResultStatus& result_status = *part.result_status;
  if (part.memory != nullptr && result_status.result_bytes != 0) {
    result_status.result =
        heap_.Locate(part.memory, result_status.result_bytes).value_or(Location{});
  }
  result_status.Enter(Phase::kDone);
}

void ResultPublisher::PublishAgreement(LeaderTensor& part, const AgreedPart& agreed) {
  const std::string bytes = EncodeAgreed(agreed);
  Status why;
  void* memory = heap_.Allocate(bytes.size(), /*zeroed=*/false, &why, Until::kWorldEnds);
  if (memory == nullptr) return Fail(part, why, SteadyNow());
  std::memcpy(memory, bytes.data(), bytes.size());
  part.memory = static_cast<std::byte*>(memory);
  part.result_status->result_bytes = bytes.size();
  PublishResult(part);
}

void ResultPublisher::PublishFailure(const LeaderOp& op, const Status& status) {
  const TimePoint deadline = After(SteadyNow(), options_.chunk_limit);
  for (const auto& part : op.parts) Fail(*part, status, deadline);
  options_.wake_host();
}

bool ResultPublisher::StopSum(LeaderTensor& part, TimePoint deadline) {
  for (;;) {
    if (part.local_sum.Stop()) return true;
    if (options_.broken() || SteadyNow() >= deadline) return false;
    ::sched_yield();
  }
}

void ResultPublisher::Fail(LeaderTensor& part, const Status& status, TimePoint deadline) {
  ResultStatus& result_status = *part.result_status;
  const bool unused = StopSum(part, deadline);
  result_status.code = static_cast<uint32_t>(status.code());
  result_status.broke = options_.broke_off() ? 1 : 0;
  const std::string& text = status.message();
  void* memory = heap_.Allocate(text.size() + 1, /*zeroed=*/false, nullptr, Until::kWorldEnds);
  if (memory != nullptr) {
    std::memcpy(memory, text.data(), text.size());
    result_status.text = heap_.Locate(memory, text.size() + 1).value_or(Location{});
    result_status.text_bytes = text.size();
    if (part.memory != nullptr && unused) heap_.Free(part.memory);
    part.memory = static_cast<std::byte*>(memory);
  }
  result_status.Enter(Phase::kFailed);
}

}  // namespace hvd
