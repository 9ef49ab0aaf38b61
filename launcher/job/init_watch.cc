#include "launcher/job/init_watch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/state/rank_text.h"
#include "launcher/output/text/seconds_text.h"
#include "runtime/base/text/format.h"

namespace hvd {

// After every event: is there something to watch?
void WatchInit(JobChange& change) {
  if (change.state.counts.waiting == 0 || change.state.phase >= JobPhase::kStopping) {
    change.state.init_watch.reset();
  } else if (!change.state.init_watch) {
    change.state.init_watch =
        JobState::InitWatch{change.now, change.now + change.state.options.init_watch};
  }
}

void ReportMissingRanks(JobChange& change) {
  JobState::InitWatch& watch = *change.state.init_watch;
  std::vector<uint32_t> missing;
  for (uint32_t r = 0; r < change.state.ranks.size(); ++r) {
    if (!change.state.ranks[r].waiting()) missing.push_back(r);
  }
  size_t waiting = change.state.ranks.size() - missing.size();
  std::string sentence =
      Format("{}{} not called hvd.init(){}; {} of {}{} there, the first for {}",
             RanksText(change.state, missing), missing.size() == 1 ? " has" : " have",
             change.state.generation > 0 ? " again" : "", waiting, change.state.ranks.size(),
             waiting == 1 ? " ranks waits" : " ranks wait", SecondsText(change.now - watch.since));
  change.Do(NotifyUser{std::move(sentence)});
  // After 10 s, then 10, 30 and 60 s later, then every 60 s.
  constexpr int kTimes[] = {1, 3, 6};
  watch.next = change.now + change.state.options.init_watch * kTimes[std::min(watch.times++, 2)];
}

}  // namespace hvd
