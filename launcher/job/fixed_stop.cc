#include "launcher/job/fixed_stop.h"

#include <algorithm>

#include "runtime/base/text/format.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// The request is for the generation that runs: a world that begins later has pages of its own.
void AskToStop(JobChange& change, const StopAsked& asked) {
  JobState& state = change.state;
  const bool in_world = std::ranges::any_of(state.ranks, [&](const RankRecord& rank) {
    return state.generation > 0 && rank.in_generation == state.generation;
  });
  if (!in_world || state.failure || state.phase > JobPhase::kRunning) return;
  if (state.stop.generation == state.generation) return;
  state.stop = {asked.signal, state.generation, {}, 0, false};
  for (uint32_t host : state.plan.UsedHosts()) state.stop.holding.insert(host);
  change.Do(HoldCommits{state.generation});
}

void HandleHeld(JobChange& change, const CommitsHeldBy& held) {
  JobState::FixedStop& stop = change.state.stop;
  if (stop.generation == 0 || stop.acting || held.held.generation != stop.generation) return;
  stop.holding.erase(held.host);
  stop.most_commits = std::max(stop.most_commits, held.held.most);
  if (!stop.holding.empty()) return;
  stop.acting = true;
  change.Do(ActAtCommit{stop.generation, stop.most_commits + 1, kUpdateStop, 0});
  change.Because(Format("signal {}: hvd.should_stop() is true from commit {} on", stop.signal,
                        stop.most_commits + 1));
}

bool LeftAsAsked(const JobState& state, const ProcessEnd& end) {
  return state.stop.acting && !end.by_signal && end.value == kStoppedExitCode;
}

}  // namespace hvd
