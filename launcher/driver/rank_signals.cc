#include "launcher/driver/rank_signals.h"

#include <csignal>
#include <vector>

#include "launcher/driver/job_outline.h"
#include "launcher/job/report/describe_end.h"

namespace hvd {

// Where ranks that train stop at a commit, SIGUSR1 is a request to do so and nothing else.
void RankSignals::Forward(int signal) {
  const bool at_commit = state_.policy().stops_at_commit;
  if (signal == SIGUSR1 && at_commit && (state_.elastic.running || state_.elastic.stop_asked))
    return events_.Push(StopAsked{signal, {}});
  const std::vector<uint32_t> hosts = HostsAtWork(state_);
  if (hosts.empty())
    return PrintUnlessEnding("no rank runs yet that could get " + SignalText(signal) +
                             "; the job goes on");
  const ForwardSignal message = forwarded_.Begin(signal, hosts);
  for (uint32_t host : hosts) agents_.Send(host, message);
  if (signal == SIGUSR1 && !at_commit) events_.Push(StopAsked{signal, {}});
}

Status RankSignals::Handle(uint32_t host, const SignalForwarded& answer, TimePoint now) {
  PrintUnlessEnding(forwarded_.Handle(host, state_.plan.hosts[host], answer, now));
  return Status::Ok();
}

void RankSignals::HandleGone(uint32_t host, TimePoint now) {
  PrintUnlessEnding(forwarded_.HostGone(host, now));
}

void RankSignals::PrintUnlessEnding(const std::string& sentence) {
  if (!sentence.empty() && !state_.asked()) screen_.Print(sentence);
}

}  // namespace hvd
