// The waits of a rank, read from the page of its generation. A stray write may have put anything
// into the block of the rank, so names come out printable and lists short.
#ifndef HVD_LAUNCHER_GENERATION_RANK_WAITS_H_
#define HVD_LAUNCHER_GENERATION_RANK_WAITS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "launcher/wire/rank_facts.h"
#include "runtime/base/clock.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// The part of the facts that the page has: waits, submitted collectives and the last finished one.
RankFacts FactsFromPage(const RankBlock& block, TimePoint now);

// For how long the rank has waited in its longest wait; zero: it does not wait.
Duration LongestWait(const RankBlock& block, TimePoint now);

// The wait of the rank that is overdue by its own limits and was not reported yet, if there is one.
class StallWatch {
 public:
  std::optional<OverdueWait> Overdue(const RankBlock& block, TimePoint now);
  // The first collective of a generation is reported sooner than others, since a generation that
  // cannot begin shows nothing else: once it has lasted for 10 s.
  std::optional<OverdueWait> FirstOverdue(const RankBlock& block, uint64_t generation,
                                          TimePoint now);

 private:
  uint64_t first_reported_ = 0;          // the generation
  std::map<uint64_t, int64_t> next_ms_;  // by id: how long it must have lasted to be reported again
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_RANK_WAITS_H_
