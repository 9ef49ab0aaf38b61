#include "launcher/driver/host_readiness.h"

#include "configs/message_text.h"
#include "launcher/driver/start_job.h"
#include "runtime/base/text/format.h"

namespace hvd {

bool HostReadiness::awaits_path() const {
  return options_.policy.finds_hosts && !options_.successor_key.empty();
}

Status HostReadiness::Handle(uint32_t host, const AgentReady& ready, TimePoint now) {
  log_.Verbose(Format("agent on host {}: pid {}, warden {}; cleanup is guaranteed by: {}",
                      state_.plan.hosts[host], ready.pid, ready.warden_pid, ready.means));
  if (ready.version != HVD_VERSION) {
    return InvalidArgument("it has hvdrun " + Printable(ready.version) +
                           " and this is hvdrun " HVD_VERSION "; install the same version there");
  }
  if (hosts_[host].remote) network_.clocks().Begin(host);
  network_.AskTimeIfDue(host, now);
  hosts_[host].free_port = ready.free_port;
  AgentFacts& facts = facts_[host];
  facts.identity = ready.identity;
  facts.slots = ready.slots;
  facts.cpus = ready.cpus;
  if (awaits_path()) return Status::Ok();
  // On a single host there is no other command to differ from; where hosts come later, the first
  // worker there fails if it has none.
  if (network_.agents().count() == 1 || options_.policy.finds_hosts) {
    SetReady(host);
  } else {
    network_.agents().Send(
        host, LookAtCommand{options_.command.at(0), PathOfWorkers(options_), options_.directory});
  }
  return Status::Ok();
}

// From here on the agent of an elastic job outlives this hvdrun, and the record for the standby
// says so.
Status HostReadiness::Handle(uint32_t host, const AgentPath&, TimePoint) {
  if (!awaits_path()) return Status::Ok();
  network_.AwaitSuccessorAt(host);
  SetReady(host);
  return Status::Ok();
}

Status HostReadiness::Handle(uint32_t host, const CommandReport& report, TimePoint) {
  facts_[host].command = report.facts;
  SetReady(host);
  return Status::Ok();
}

// Where workers of stock Horovod meet depends on how their host is reached.
void HostReadiness::SetReady(uint32_t host) {
  const auto push = [this, host] {
    if (state_.host_open[host]) events_.Push(AgentIsReady{host, facts_[host]});
  };
  if (stock_ == nullptr) return push();
  stock_->Learn(host, push);
}

}  // namespace hvd
