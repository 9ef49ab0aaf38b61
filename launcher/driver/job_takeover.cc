#include "launcher/driver/job_takeover.h"

#include <signal.h>
#include <unistd.h>

#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "launcher/driver/job_settings.h"
#include "launcher/driver/takeover/elastic_adoption.h"
#include "launcher/driver/takeover/job_record.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"

namespace hvd {

JobTakeover::JobTakeover(const DriverOptions& options, JobState& state, JobHosts& hosts,
                         AgentNetwork& network, WorkerStarter& starter, JobActions& actions,
                         AgentMessages& messages, EventQueue& events, Screen& screen)
    : options_(options),
      record_(*options.taken_over),
      state_(state),
      hosts_(hosts),
      network_(network),
      starter_(starter),
      actions_(actions),
      messages_(messages),
      events_(events),
      screen_(screen),
      adoption_(record_) {
  if (options.policy.finds_hosts) RestoreState();
}

// The state and the hosts of an elastic job, as its former hvdrun has left them.
void JobTakeover::RestoreState() {
  if (!DecodeJobState(record_.job, state_, SteadyNow()) ||
      record_.hosts.size() > state_.elastic.hosts.size())
    throw std::runtime_error("the hvdrun that was killed has left a record that cannot be read");
  std::vector<bool> outlives(state_.elastic.hosts.size());
  for (uint32_t host = 0; host < outlives.size(); ++host) {
    network_.AddHost(state_.elastic.hosts[host].listing);
    if (host >= record_.hosts.size()) continue;
    outlives[host] = record_.hosts[host].has_rank != 0;
    hosts_[host].free_port = record_.hosts[host].free_port;
  }
  ForgetHosts(state_, outlives);
}

// Those of other hosts are gone.
void JobTakeover::Open() {
  sigset_t held;  // since the standby was made
  ::sigemptyset(&held);
  for (int signal : {SIGINT, SIGTERM}) ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
  screen_.Print(Format("hvdrun (pid {}) was killed; another one, pid {}, goes on with the job",
                       record_.pid, ::getpid()));
  const TakeOver printed = screen_.printed(static_cast<uint32_t>(state_.ranks.size()));
  const auto grace = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(options_.successor_grace_seconds));
  for (uint32_t host = 0; host < record_.hosts.size(); ++host) {
    if (record_.hosts[host].has_rank != 0)
      network_.agents()[host].OpenAsSuccessor(record_.hosts[host].there, record_.key, printed,
                                              grace);
  }
}

void JobTakeover::Handle(uint32_t host, ToDriver message) {
  if (auto* snapshot = std::get_if<HostSnapshot>(&message)) {
    if (Status own = CheckSnapshot(state_.plan, host, *snapshot); !own.ok())
      return network_.agents()[host].Break(own.message());
    adoption_->Add(host, std::move(*snapshot));
  } else {
    adoption_->Keep(host, std::move(message));
  }
}

void JobTakeover::HandleLost(uint32_t host, const std::string& reason) {
  adoption_->Lose(host, reason);
}

void JobTakeover::GoOn(const std::vector<int32_t>& interrupts) {
  Adoption adoption = *std::exchange(adoption_, std::nullopt);
  options_.policy.finds_hosts ? GoOnElastic(std::move(adoption), interrupts)
                              : GoOnFixed(std::move(adoption), interrupts);
}

void JobTakeover::GoOnFixed(Adoption adoption, const std::vector<int32_t>& interrupts) {
  network_.FormTree();
  TakeoverRecord known = record_;
  known.interrupts = interrupts;
  for (const JobEvent& event : AdoptionEvents(known, adoption.snapshots())) events_.Push(event);
  PushLost(adoption);
  ReceiveKept(adoption);
}

void JobTakeover::GoOnElastic(Adoption adoption, const std::vector<int32_t>& interrupts) {
  HostSnapshots snapshots = adoption.snapshots();
  snapshots.resize(state_.elastic.hosts.size());
  std::set<uint32_t> with_part;
  for (uint32_t host = 0; host < snapshots.size(); ++host) {
    if (snapshots[host] && snapshots[host]->started != 0) with_part.insert(host);
    if (snapshots[host] && hosts_[host].remote) network_.clocks().Begin(host);
  }
  starter_.UseRunning(std::move(with_part));
  const std::vector<JobEvent> missed = MissedEvents(state_, snapshots);
  for (const JobAction& action : UnfinishedActions(state_, snapshots, SteadyNow()))
    actions_.Execute(action, SteadyNow());
  for (const JobEvent& event : missed) events_.Push(event);
  PushLost(adoption);
  ReceiveKept(adoption);
  for (size_t at = record_.interrupts.size(); at < interrupts.size(); ++at)
    events_.Push(Interrupted{interrupts[at]});
  events_.Push(Tick{});
}

// A host that is gone although all workers had ended, or that the job had dismissed, has only lost
// its answer.
void JobTakeover::PushLost(const Adoption& adoption) {
  for (const auto& [host, reason] : adoption.lost()) {
    const bool dismissed = host < state_.elastic.hosts.size() && state_.elastic.hosts[host].gone;
    if (reason.empty() || record_.is_over != 0 || dismissed) {
      events_.Push(AgentFinished{host});
    } else {
      events_.Push(AgentLost{host, reason});
    }
  }
}

void JobTakeover::ReceiveKept(Adoption& adoption) {
  for (auto& [host, message] : adoption.PopMessages())
    messages_.Receive(host, message, SteadyNow());
}

}  // namespace hvd
