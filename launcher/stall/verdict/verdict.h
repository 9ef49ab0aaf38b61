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
  kElsewhere,    // it waits in a different collective
  kBusy,         // it computes
  kBlocked,      // in a system call
  kWorking,      // it waits in the same collective, for data
  kUnreachable,  // the agent of its host does not answer
};

// "dead", "stopped", "ended early" and so on, as in docs/hangs.md.
const char* ClassName(RankClass found);

// The agents' facts of about one moment, by rank of the generation.
struct WorldFacts {
  std::vector<std::optional<RankFacts>> ranks;  // nothing: the agent of its host did not answer
  std::vector<std::string> hosts;               // by rank; empty: its agent cannot be reached
};

struct MissingRank {
  uint32_t rank = 0;
  RankClass found = RankClass::kUnreachable;
};

struct Verdict {
  std::string sentence;  // which rank waits in which collective, how long, and for which ranks
  std::string details;   // lines about the ranks, each indented and ended by a newline
  std::vector<MissingRank> missing;
  bool never_ends = false;
  std::string situation;  // a key that changes when a waiting or missing rank moves
};

// The result of an examination of a slow collective.
struct StallExplained {
  uint64_t generation = 0;
  Verdict verdict;
};

// The warning for the user while the job continues: several lines, without the last newline.
std::string StallText(const Verdict& verdict);
// The reason for ending a world whose wait can never end.
std::string EndlessText(const Verdict& verdict);

// The class of a missing rank.
RankClass ClassOf(const std::optional<RankFacts>& facts, uint64_t awaited_key);

// Ranks whose waits can never end: each waits in every thread that ever submitted, for a rank that
// is in this set or has ended and has not submitted the collective. This must hold in both
// examinations, with no submission by any of them in between.
std::set<uint32_t> NeverEnding(const WorldFacts& before, const WorldFacts& now);

// The collective to report: one that can never end, else the one that has waited longest for ranks
// that do not wait themselves. Nothing if no rank has waited `at_least_ms`. `never`: result of
// NeverEnding.
std::optional<Verdict> Explain(const WorldFacts& facts, const std::set<uint32_t>& never,
                               int64_t at_least_ms);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_VERDICT_H_
