#include "launcher/driver/job_actions.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/driver/job_settings.h"
#include "launcher/driver/start_job.h"
#include "launcher/job/report/job_result.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {

void JobActions::Execute(const JobAction& action, TimePoint now) {
  now_ = now;
  std::visit([this](const auto& a) { On(a); }, action);
}

void JobActions::On(const UsePlan&) {
  screen_.UsePlan(state_.plan);
  network_.UsePlan();
  log_.Info("agents run on all hosts: " + PlanText(state_.plan));
}

void JobActions::On(const OpenHost& open) {
  network_.AddHost(open.listing);
  network_.agents()[open.host].Open();
}

// Where ranks keep their places, the agents know the members.
void JobActions::On(const BeginWorld& begin) {
  if (state_.policy().ranks_change) return BeginWithMembers(begin);
  network_.directory().Begin(begin.number);
  network_.Broadcast(BeginGeneration{begin.number});
}

void JobActions::BeginWithMembers(const BeginWorld& begin) {
  const Generation& generation = begin.generation;
  for (const Member& member : generation.members)
    screen_.UseRank(member.place.rank, state_.plan.hosts[member.place.host],
                    member.place.local_rank);
  network_.UseMembers();
  network_.directory().Begin(begin.number);
  BeginGeneration message{begin.number, generation.size(),
                          static_cast<uint8_t>(generation.homogeneous), generation.Layout()};
  const bool one_machine = std::ranges::none_of(
      generation.members, [this](const Member& m) { return hosts_[m.place.host].remote; });
  message.one_machine = one_machine ? 1 : 0;
  std::map<uint32_t, std::vector<Member>> by_host = ByHost(generation.members);
  for (uint32_t host : starter_.hosts_with_part()) {
    message.members = std::move(by_host[host]);
    network_.agents().Send(host, message);
  }
}

void JobActions::SendToWorker(uint32_t worker, const ToAgent& message) {
  network_.agents().Send(state_.plan.ranks[worker].host, message);
}

void JobActions::On(const NotifyUser& notice) {
  if (!notice.terminal_only || screen_.on_terminal()) screen_.Print(notice.sentence);
}

// ---- the end

// Agents answer in order: all rings come before they say that they are gone.
void JobActions::On(const FinishJob& finish) {
  recordings_.BeginFailureDump(now_);
  network_.agents().SendToAll(finish);
}

void JobActions::On(const CutChannels&) {
  if (state_.phase == JobPhase::kFinishing) screen_.NoteUnsent();
  for (uint32_t host = 0; host < network_.agents().count(); ++host) {
    AgentConnection& agent = network_.agents()[host];
    if (agent.away())
      screen_.Print(UnreachedText(state_.plan.hosts[host],
                                  HeartbeatOf(options_.settings, hosts_[host].remote).grace));
    agent.Cut();
  }
}

void JobActions::On(const EndRun&) {
  launcher_.End();
  if (!std::exchange(job_over_, true))
    log_.Info(Format("the job ended with exit code {} after {}", ExitCode(state_),
                     SecondsText(now_ - begun_)));
}

}  // namespace hvd
