#include "launcher/job/elastic_restart.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <vector>

#include "launcher/job/job_state.h"

namespace hvd {
namespace {

// A script that has not called hvd.init() so long after one of its processes went is taken for one
// that never does.
constexpr Duration kNativePatience = std::chrono::seconds(10);

}  // namespace

// A worker went before any rank has called hvd.init(). If none does soon, the script knows of no
// generations, and the others wait for that worker in vain.
void NoteIncomplete(ElasticChange& change) {
  if (!change.elastic.any_joined && !change.elastic.incomplete_since)
    change.elastic.incomplete_since = change.now;
}

// A script that knows of no generations cannot go on with fewer ranks or more: all of it is started
// again.
void RestartAll(ElasticChange& change, const std::string& why) {
  if (change.elastic.restart) return;
  change.elastic.incomplete_since.reset();
  change.elastic.restart = Restart{change.now + change.state.options.terminate_grace};
  const std::vector<uint32_t> alive = change.AliveWorkers();
  change.Tell(why + "; all ranks are started again, because none has called hvd.init() (restart " +
              std::to_string(change.elastic.restarts + 1) + ", " +
              change.elastic.budget.Text(change.now) + ")");
  for (uint32_t worker : alive) {
    change.state.ranks[worker].forgiven = true;
    change.Do(SignalWorker{worker, SIGTERM});
  }
}

void RestartIfIncomplete(ElasticChange& change) {
  if (!change.elastic.incomplete_since || change.elastic.any_finished || change.elastic.stop_asked)
    return;
  if (change.now < *change.elastic.incomplete_since + kNativePatience) return;
  RestartAll(change, "a rank is no longer there");
}

void GoOnWithRestart(ElasticChange& change) {
  if (!change.elastic.restart) return;
  if (change.state.counts.ended == change.state.ranks.size()) {
    change.elastic.restart.reset();
    ++change.elastic.restarts;
    change.elastic.any_joined = false;
    return;
  }
  if (change.elastic.restart->killing || change.now < change.elastic.restart->kill_at) return;
  change.elastic.restart->killing = true;
  for (uint32_t worker = 0; worker < change.state.ranks.size(); ++worker) {
    if (change.state.ranks[worker].phase != RankPhase::kEnded)
      change.Do(SignalWorker{worker, SIGKILL});
  }
}

std::optional<TimePoint> NextRestart(const ElasticState& elastic) {
  if (elastic.restart && !elastic.restart->killing) return elastic.restart->kill_at;
  const bool may_restart = !elastic.any_finished && !elastic.stop_asked;
  if (!elastic.incomplete_since || !may_restart) return std::nullopt;
  return *elastic.incomplete_since + kNativePatience;
}

}  // namespace hvd
