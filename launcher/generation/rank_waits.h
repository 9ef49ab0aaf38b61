// What the page of a generation tells about the waits of a rank. Its block may hold anything that a
// stray write put there, so names come out printable and lists short.
#ifndef HVD_LAUNCHER_GENERATION_RANK_WAITS_H_
#define HVD_LAUNCHER_GENERATION_RANK_WAITS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "launcher/wire/rank_facts.h"
#include "runtime/base/clock.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// The part of the facts that the page has: waits, what was submitted and what has ended.
RankFacts FactsFromPage(const RankBlock& block, TimePoint now);

// The wait of the rank that is overdue by its own limits and was not reported yet, if there is one.
class StallWatch {
 public:
  std::optional<WaitSeen> Overdue(const RankBlock& block, TimePoint now);

 private:
  std::map<uint64_t, int64_t> next_ms_;  // by id: how long it must have lasted to be reported again
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_RANK_WAITS_H_
