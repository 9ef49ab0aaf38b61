#include "launcher/job/elastic/elastic_restart.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_seats.h"
#include "launcher/job/state/job_state.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// A script that has not called hvd.init() this long after it lost a process is assumed never to
// call it. If no process is missing but slots are free, the time counts from the start, and is
// longer: a slow import must not be restarted.
constexpr Duration kLossPatience = std::chrono::seconds(10);
constexpr Duration kResizePatience = std::chrono::seconds(60);

Duration Patience(const ElasticState& elastic, Duration of_auto) {
  return elastic.policy.restart == RestartMode::kInJob ? Duration{} : of_auto;
}

bool MayRestart(const ElasticState& elastic) {
  return !elastic.any_finished && !elastic.stop_asked && !elastic.restart;
}

// Why the set of running workers should change; empty: it should not.
std::string ResizeReason(const ElasticChange& change) {
  const JobPolicy& policy = change.elastic.policy;
  const SeatCount seats = CountSeats(change);
  const size_t next = std::min<size_t>(seats.taken + seats.free, policy.max_np);
  if (next < policy.min_np) return "";
  if (seats.unlisted > 0) return "a rank has no slot any more";
  return next > seats.taken ? "there are slots for more ranks" : "";
}

}  // namespace

void RestartAll(ElasticChange& change, const std::string& why) {
  ElasticState& elastic = change.elastic;
  if (elastic.restart || !change.MayBeginAgain()) return;
  elastic.incomplete_since.reset();
  elastic.restart = Restart{change.now + change.state.options.terminate_grace};
  const bool by_mode = elastic.policy.restart == RestartMode::kInJob;
  change.Notify(Format("{}; all ranks are started again{} (restart {}, {})", why,
                       by_mode ? "" : ", because none has called hvd.init()", elastic.restarts + 1,
                       elastic.budget.Text(change.now)));
  for (uint32_t worker : change.AliveWorkers()) {
    change.state.ranks[worker].forgiven = true;
    change.Do(SignalWorker{worker, SIGTERM});
  }
}

void NoteIncomplete(ElasticChange& change) {
  ElasticState& elastic = change.elastic;
  if (elastic.RestartsInJob() && !elastic.restart && !elastic.incomplete_since)
    elastic.incomplete_since = change.now;
}

namespace {

bool IsIncomplete(const ElasticChange& change) {
  const ElasticState& elastic = change.elastic;
  return elastic.incomplete_since && MayRestart(elastic) &&
         change.now >= *elastic.incomplete_since + Patience(elastic, kLossPatience);
}

}  // namespace

RestartPlan PlanRestart(const ElasticChange& change) {
  const ElasticState& elastic = change.elastic;
  if (IsIncomplete(change)) return {"a rank is no longer there", {}, {}};
  const bool running = change.state.phase == JobPhase::kRunning && change.CountAlive() > 0;
  if (!running || !elastic.RestartsInJob() || !MayRestart(elastic)) return {};
  const std::string why = ResizeReason(change);
  if (why.empty()) return {};
  const TimePoint since = elastic.resize_since.value_or(change.now);
  TimePoint at = elastic.started_at + Patience(elastic, kResizePatience);
  if (HostsConnecting(change)) at = std::max(at, since + kHostsPatience);
  if (change.now < at) return {"", since, at};
  return {why, {}, {}};
}

void ContinueRestart(ElasticChange& change) {
  ElasticState& elastic = change.elastic;
  if (!elastic.restart) return;
  if (change.state.counts.ended == change.state.ranks.size()) {
    elastic.restart.reset();
    elastic.restarted = true;
    ++elastic.restarts;
    elastic.any_joined = false;
    return;
  }
  if (elastic.restart->killing || change.now < elastic.restart->kill_at) return;
  elastic.restart->killing = true;
  for (uint32_t worker = 0; worker < change.state.ranks.size(); ++worker) {
    if (!change.state.ranks[worker].ended()) change.Do(SignalWorker{worker, SIGKILL});
  }
}

std::optional<TimePoint> NextRestart(const ElasticState& elastic) {
  if (elastic.restart) {
    return elastic.restart->killing ? std::nullopt : std::optional(elastic.restart->kill_at);
  }
  if (!MayRestart(elastic)) return std::nullopt;
  if (!elastic.incomplete_since) return elastic.resize_at;
  const TimePoint at = *elastic.incomplete_since + Patience(elastic, kLossPatience);
  return elastic.resize_at ? std::min(at, *elastic.resize_at) : at;
}

}  // namespace hvd
