// Which rank each worker has in a generation of an elastic job. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_RANK_ORDER_H_
#define HVD_LAUNCHER_JOB_POLICY_RANK_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"

namespace hvd {

// A worker that takes part.
struct Candidate {
  uint32_t worker = 0;
  uint32_t host = 0;                  // its number in the job
  uint32_t seat = 0;                  // of the slots of its host, from 0
  std::optional<uint32_t> last_rank;  // in the generation before; none: it is new
  uint64_t since = 0;                 // the first generation that it was in
};

// Whether `a` is more likely to have the state of the job than `b`; both are survivors.
bool IsSenior(const Candidate& a, const Candidate& b);

// A generation: its members by rank.
struct Generation {
  std::vector<Member> members;
  bool homogeneous = true;

  uint32_t size() const { return static_cast<uint32_t>(members.size()); }
  // The hosts that have a member are numbered from 0, in the order of ranks.
  std::vector<RankRun> Layout() const;
};

// Of a job of fixed size: its plan, since another launcher may have placed its ranks.
Generation GenerationOf(const Plan& plan);

// The ranks of a host are consecutive and in the order of its local ranks. Hosts keep their order
// by the lowest rank that survived on them; hosts without a survivor follow by number. On a host
// the ranks follow the seats, so that a new worker takes the place, and the device, of the one
// before it. Rank 0 is a survivor that came first of all, so that it has the state of the job
// wherever any rank has it: one that was new in the last generation may not have been told before
// that broke. For its sake its host comes first, and on that host the survivors.
Generation ArrangeRanks(std::vector<Candidate> candidates);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_RANK_ORDER_H_
