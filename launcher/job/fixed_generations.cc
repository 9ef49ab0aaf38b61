#include "launcher/job/fixed_generations.h"

#include <string>
#include <utility>

#include "launcher/job/state/rank_text.h"
#include "runtime/base/text/format.h"

namespace hvd {

void BeginWhenAllWait(JobChange& change) {
  if (change.state.counts.waiting < change.state.ranks.size()) return;
  ++change.state.generation;
  change.state.ending.reset();
  for (RankRecord& rank : change.state.ranks) {
    rank.stopped = false;
    change.state.Waits(rank, false);
    rank.in_generation = change.state.generation;
  }
  change.Do(BeginGeneration{change.state.generation});
  change.Because(Format("every rank called hvd.init(): generation {}", change.state.generation));
}

// Ranks that wait for a world which can no longer form are told so.
void BreakWaiting(JobChange& change, uint32_t missing) {
  if (change.state.counts.waiting == 0) return;
  for (RankRecord& rank : change.state.ranks) change.state.Waits(rank, false);
  const RankRecord& gone = change.state.ranks[missing];
  std::string how = gone.end ? EndText(*gone.end) : gone.lost ? "was lost" : "could not be started";
  std::string again = change.state.generation > 0 ? " again" : "";
  std::string reason =
      Format("{} {} before it called hvd.init(){}, so the world of {} cannot form",
             RankText(change.state, missing), how, again, change.state.plan.size());
  change.Do(BreakGeneration{0, reason});
  change.Because(reason);
}

}  // namespace hvd
