#include "launcher/driver/successor_record.h"

#include <unistd.h>

#include <utility>
#include <variant>

#include "launcher/driver/takeover/job_record.h"
#include "launcher/job/report/job_result.h"
#include "launcher/process/links/record_link.h"
#include "runtime/base/time_numbers.h"

namespace hvd {
namespace {

// The agents know this as well as hvdrun does, once it has happened.
bool IsKnownToAgents(const JobEvent& event) {
  return std::holds_alternative<WorkerStarted>(event) ||
         std::holds_alternative<RankJoined>(event) || std::holds_alternative<ClockRead>(event) ||
         std::holds_alternative<HostIdle>(event);
}

}  // namespace

void SuccessorRecord::LeaveState(const JobEvent& event, const Decision& decision) {
  if (link_ < 0) return;
  if (IsKnownToAgents(event) && decision.actions.empty()) return;
  std::string now = EncodeJobState(state_);
  if (now == left_state_) return;
  TakeoverRecord record = Begin();
  record.job = left_state_ = std::move(now);
  for (uint32_t host = 0; host < network_.agents().count(); ++host) {
    const AgentPath& there = network_.agents()[host].there();
    const bool outlives = state_.host_open[host] && !there.hvdrun.empty();
    record.hosts.push_back(
        {there, static_cast<uint8_t>(outlives ? 1 : 0), {}, hosts_[host].free_port});
  }
  Leave(record);
}

void SuccessorRecord::LeaveChanges() {
  if (link_ < 0 || !network_.tree().formed() || !state_.blocked.empty() ||
      state_.phase == JobPhase::kOpening)
    return;
  const std::tuple now{interrupts_.size(), state_.failure.has_value(), state_.phase};
  if (std::exchange(left_, now) == now) return;
  TakeoverRecord record = Begin();
  record.host_names = state_.plan.hosts;
  record.ranks = state_.plan.ranks;
  record.homogeneous = state_.plan.homogeneous ? 1 : 0;
  for (uint32_t host = 0; host < hosts_.count(); ++host)
    record.hosts.push_back({network_.agents()[host].there(),
                            static_cast<uint8_t>(network_.tree().Has(host) ? 1 : 0),
                            hosts_[host].addresses, 0});
  if (state_.failure) SetFailure(record, *state_.failure);
  Leave(record);
}

// What is the same for all jobs.
TakeoverRecord SuccessorRecord::Begin() const {
  TakeoverRecord record;
  record.pid = ::getpid();
  record.key = options_.successor_key;
  record.begun_ns = NanosecondsOf(begun_);
  record.master_address = hosts_.master().address;
  record.master_port = hosts_.master().port;
  record.interrupts = interrupts_;
  if (state_.phase >= JobPhase::kFinishing) {
    record.is_over = 1;
    record.exit_code = ExitCode(state_);
    record.report = last_output_.Text();
  }
  return record;
}

void SuccessorRecord::Leave(const TakeoverRecord& record) {
  if (!LeaveRecord(link_, EncodeTakeoverRecord(record))) link_ = -1;
}

}  // namespace hvd
