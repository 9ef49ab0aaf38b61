#include "launcher/driver/external_launcher.h"

#include <cstdint>
#include <vector>

#include "runtime/base/exit_status.h"

namespace hvd {

// Each of its processes waits for the agent of its host, so the messages need not have arrived.
void ExternalLauncher::Start() {
  for (uint32_t host : state_.plan.UsedHosts()) agents_.Send(host, AwaitPlaces{});
  std::vector<uint32_t> cpus;
  for (const AgentFacts& facts : state_.facts) cpus.push_back(facts.cpus);
  auto made = make_(io_, state_.plan, cpus, [this](const LauncherEnd& end) {
    events_.Push(LauncherEnded{end.reason, end.words, end.exit_code, end.by_signal});
  });
  if (!made.ok()) {
    const LauncherEnded never{"was not started", made.status().message(), kUsageError};
    return events_.Push(never);
  }
  run_ = std::move(*made);
  log_.Verbose("starting " + CommandText(run_->command()));
  run_->Start();
}

void ExternalLauncher::End() {
  if (run_ != nullptr)
    run_->End(state_.failure && state_.failure->kind == JobFailure::Kind::kLauncher);
}

}  // namespace hvd
