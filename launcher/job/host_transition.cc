#include "launcher/job/host_transition.h"

#include <optional>
#include <string>
#include <utility>

#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_losses.h"
#include "launcher/job/job_ending.h"
#include "launcher/job/job_opening.h"
#include "launcher/job/report/job_result.h"
#include "runtime/base/text/format.h"

namespace hvd {

void HostTransition::Handle(const AgentIsReady& event) {
  if (change_.MayReplace()) return HandleFacts(members_, event.host, event.facts);
  HandleReady(change_, event);
}

void HostTransition::Handle(const AgentFinished& event) {
  state_.host_open[event.host] = false;
  EndWhenAllClosed(change_);
}

// Only ranks of other hosts have failed, moments ago. A rank may report a lost peer before the loss
// of the peer's host is known.
bool HostTransition::FailedOfIt(uint32_t host) const {
  if (state_.phase != JobPhase::kStopping || state_.asked()) return false;
  if (!state_.failure) return false;
  if (state_.failure->kind == JobFailure::Kind::kRoute) {
    return state_.plan.ranks[state_.failure->rank].host == host ||
           state_.plan.ranks[state_.failure->peer].host == host;
  }
  if (state_.failure->kind != JobFailure::Kind::kRank) return false;
  const std::optional<uint32_t> first = FirstFailedRank(state_);
  return first && state_.plan.ranks[*first].host != host;
}

// The ranks of all other hosts have finished, and all ranks that still ran on this host had said
// goodbye: only their exit codes are missing.
bool HostTransition::AllHadFinished(uint32_t host) const {
  if (state_.failure || state_.phase > JobPhase::kRunning) return false;
  bool others = false;
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    const RankRecord& rank = state_.ranks[r];
    if (rank.end && !rank.end->ok()) return false;
    if (state_.plan.ranks[r].host != host) {
      if (!rank.end) return false;
      others = true;
    } else if (!rank.end) {
      const bool said_goodbye = rank.parting && !rank.loss && !rank.is_consequence();
      if (!said_goodbye) return false;
    }
  }
  return others;
}

void HostTransition::Handle(const AgentLost& event) {
  if (!state_.host_open[event.host]) return;
  state_.host_open[event.host] = false;
  if (change_.MayReplace()) return LoseHost(members_, event.host, event.reason);
  if (state_.dismissed[event.host]) return EndWhenAllClosed(change_);
  if (state_.phase == JobPhase::kOpening) {
    state_.stages.Fail(event.host, event.reason, change_.now);
    return ReviewHosts(change_);
  }
  FailOfLostRank(change_);
  const bool had_finished = AllHadFinished(event.host);
  bool took_ranks = false;
  for (const Placement& place : state_.plan.ranks) {
    if (place.host != event.host) continue;
    took_ranks = took_ranks || !state_.ranks[place.rank].ended();
    state_.Move(place.rank, WorkerState::kEnded);
  }
  if (took_ranks && had_finished) {
    change_.Notify("host " + state_.plan.hosts[event.host] + " was lost: " + event.reason +
                   "; its ranks had left the world with hvd.shutdown() before that, and all other "
                   "ranks have finished, so the job has succeeded");
    FinishWhenAllEnded(change_);
    return EndWhenAllClosed(change_);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kHost;
  failure.host = event.host;
  failure.reason = event.reason;
  if (took_ranks && FailedOfIt(event.host)) {
    state_.failure = std::move(failure);
    change_.SetReason(event.reason);
  } else {
    FailJob(change_, std::move(failure), event.reason);
  }
  FinishWhenAllEnded(change_);
  EndWhenAllClosed(change_);
}

// The agent was asked to end while the ranks do not train, and has forwarded the request. It is cut
// off, as it would have ended anyway.
void HostTransition::End(uint32_t host, int signal) {
  if (!change_.AtWork() || state_.elastic.hosts[host].gone) return;
  change_.Do(CutHost{host});
  LoseHost(members_, host, Format("its agent was asked to end by signal {}", signal));
}

// Gives up hosts that have exceeded the limit of their stage.
void HostTransition::Expire() {
  if (!change_.AtWork()) return;
  state_.stages.Expire(change_.now);
  const std::string slow = state_.stages.PopSlow(state_.plan.hosts, change_.now);
  const std::string what =
      change_.MayReplace() ? "waiting for hosts: " : "the job has not started yet; ";
  if (!slow.empty()) change_.Notify(what + slow);
  for (uint32_t host = 0; host < state_.elastic.hosts.size(); ++host) {
    const bool failed = state_.stages.stage(host) == HostStage::kFailed;
    if (!failed || state_.elastic.hosts[host].gone) continue;
    change_.Do(CutHost{host});
    LoseHost(members_, host, state_.stages.TroubleOf(host));
  }
}

}  // namespace hvd
