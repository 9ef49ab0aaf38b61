#include "launcher/job/job_pause.h"

#include <csignal>
#include <optional>
#include <utility>

namespace hvd {

void Pause(JobChange& change) {
  if (change.state.paused_at || change.state.phase >= JobPhase::kFinishing) return;
  change.state.paused_at = change.now;
  change.Do(SignalWorkers{SIGSTOP});
  change.SetReason("paused");
}

void Resume(JobChange& change) {
  if (!change.state.paused_at) return;
  Duration away = change.now - *std::exchange(change.state.paused_at, std::nullopt);
  for (std::optional<TimePoint>* time :
       {&change.state.deadline, &change.state.timeout_at, &change.state.dismissed_by,
        &change.state.places.end_by, &change.state.leave_by}) {
    if (*time && **time < TimePoint::max() - away) **time += away;
  }
  change.state.stages.Shift(away);
  if (change.state.init_watch) {
    change.state.init_watch->since += away;
    change.state.init_watch->next += away;
  }
  NoteHeldUp(change.state, away);
  change.Do(SignalWorkers{SIGCONT});
  change.SetReason("resumed");
}

void NoteHeldUp(JobState& state, Duration away) {
  state.elastic.Shift(away);
  for (RankRecord& rank : state.ranks) {
    if (rank.end_by && *rank.end_by < TimePoint::max() - away) *rank.end_by += away;
    rank.init.since += away;
  }
}

}  // namespace hvd
