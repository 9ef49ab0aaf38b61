// The verdict about a collective that takes too long: which ranks are missing, what each of them
// does, and whether the wait can ever end. Pure: the findings of the agents are an argument.
#ifndef HVD_LAUNCHER_STALL_VERDICT_VERDICT_H_
#define HVD_LAUNCHER_STALL_VERDICT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/wire/rank_facts.h"

namespace hvd {

// The activity of a missing rank. docs/hangs.md explains each.
enum class RankClass {
  kDead,         // its process has ended
  kStopped,      // by a signal or a debugger
  kEndedEarly,   // it has left the world
  kElsewhere,    // it waits in another collective
  kBusy,         // it computes
  kBlocked,      // in a system call
  kWorking,      // it waits in the same collective, for data
  kUnreachable,  // the agent of its host does not answer
};

// "dead", "stopped", "ended early" and so on, as in docs/hangs.md.
const char* ClassName(RankClass found);

// Facts that the agents found out at about one time. By rank of the generation.
struct WorldFacts {
  std::vector<std::optional<RankFacts>> ranks;  // nothing: the agent of its host did not answer
  std::vector<std::string> hosts;  // of the ranks; empty: one whose agent cannot be asked
};

struct MissingRank {
  uint32_t rank = 0;
  RankClass found = RankClass::kUnreachable;
};

struct Verdict {
  std::string sentence;  // which rank waits for how long in which collective, and for which ranks
  std::string details;   // lines about the ranks, each indented and ended by a newline
  std::vector<MissingRank> missing;
  bool never_ends = false;
  std::string situation;  // the same until a rank that waits or is missing has moved
};

// The agents were asked why a collective takes so long.
struct StallExplained {
  uint64_t generation = 0;
  Verdict verdict;
};

// The text that the user reads while the job goes on: several lines, without the last newline.
std::string StallText(const Verdict& verdict);
// Why a world ends whose wait can never end.
std::string EndlessText(const Verdict& verdict);

// The class of a rank that others wait for.
RankClass ClassOf(const std::optional<RankFacts>& facts, uint64_t awaited_key);

// Ranks whose waits can never end: each waits in every thread that ever submitted, and for a rank
// that is one of them or has ended, and that has not submitted the collective. They have to be so
// in both looks, between which none of them submitted anything.
std::set<uint32_t> NeverEnding(const WorldFacts& before, const WorldFacts& now);

// The collective to report: one that never ends, or else the one that has waited longest for ranks
// that do not wait themselves. Nothing when no rank waits as long as `at_least_ms`. `never`: the
// ranks of NeverEnding.
std::optional<Verdict> Explain(const WorldFacts& facts, const std::set<uint32_t>& never,
                               int64_t at_least_ms);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_VERDICT_H_
