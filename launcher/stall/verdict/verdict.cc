#include "launcher/stall/verdict/verdict.h"

#include <algorithm>
#include <map>

#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// A process that only waits uses less CPU than this.
constexpr uint32_t kBusyPercent = 20;
constexpr size_t kMostLines = 16;

// A collective that ranks wait in.
struct Stalled {
  uint64_t key = 0;
  int32_t set = 0;  // the process set
  std::string name;
  uint32_t first = 0;  // the rank that has waited longest
  int64_t waited_ms = 0;
  std::vector<uint32_t> waiting;  // all of them, ascending
  std::set<uint32_t> awaited;
};

std::string Quote(const std::string& name) {
  constexpr size_t kMostName = 128;
  return Quoted(name, kMostName);
}

std::string Seconds(int64_t ms) { return Format("{} s", ms / 1000); }

std::string List(const std::vector<uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RankRanges(ranks);
}

bool HasSubmitted(const std::optional<RankFacts>& facts, uint64_t key) {
  return facts && std::ranges::find(facts->pending, key) != facts->pending.end();
}

const WaitFacts* WaitIn(const RankFacts& facts, uint64_t key) {
  const auto found = std::ranges::find(facts.waits, key, &WaitFacts::key);
  return found == facts.waits.end() ? nullptr : &*found;
}

const WaitFacts* LongestWait(const RankFacts& facts) {
  const auto found = std::ranges::max_element(facts.waits, {}, &WaitFacts::waited_ms);
  return found == facts.waits.end() ? nullptr : &*found;
}

std::map<uint64_t, Stalled> StalledIn(const WorldFacts& facts) {
  std::map<uint64_t, Stalled> all;
  for (uint32_t rank = 0; rank < facts.ranks.size(); ++rank) {
    if (!facts.ranks[rank]) continue;
    for (const WaitFacts& wait : facts.ranks[rank]->waits) {
      Stalled& stalled = all[wait.key];
      stalled.key = wait.key;
      stalled.set = wait.set;
      if (stalled.waiting.empty() || wait.waited_ms > stalled.waited_ms) {
        stalled.first = rank;
        stalled.waited_ms = wait.waited_ms;
        stalled.name = wait.name;
      }
      stalled.waiting.push_back(rank);
      stalled.awaited.insert(wait.awaited.begin(), wait.awaited.end());
    }
  }
  return all;
}

// Of a collective of all ranks.
std::vector<uint32_t> NotWaitingIn(const Stalled& stalled, const WorldFacts& facts) {
  std::vector<uint32_t> others;
  for (uint32_t rank = 0; rank < facts.ranks.size(); ++rank) {
    if (std::ranges::find(stalled.waiting, rank) == stalled.waiting.end()) others.push_back(rank);
  }
  return others;
}

// Members that have submitted it but do not wait for it, and those that are stopped.
std::vector<uint32_t> HoldingUp(const Stalled& stalled, const WorldFacts& facts) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const std::optional<RankFacts>& of_rank = facts.ranks[rank];
    const RankClass found = ClassOf(of_rank, stalled.key);
    if (!of_rank || found == RankClass::kWorking) continue;
    if (HasSubmitted(of_rank, stalled.key) || (stalled.set == 0 && found == RankClass::kStopped))
      ranks.push_back(rank);
  }
  return ranks;
}

// Members that have not submitted it; if all have, those that it waits for. These may themselves
// wait for others unknown to the waiting ranks. While data is in flight between hosts a rank may
// not know any; then those that do not wait in it.
std::vector<uint32_t> MissingOf(const Stalled& stalled, const WorldFacts& facts) {
  std::vector<uint32_t> missing;
  for (uint32_t rank : stalled.awaited) {
    if (rank < facts.ranks.size() && !HasSubmitted(facts.ranks[rank], stalled.key))
      missing.push_back(rank);
  }
  if (!missing.empty()) return missing;
  for (uint32_t rank : stalled.awaited) {
    if (rank < facts.ranks.size()) missing.push_back(rank);
  }
  if (missing.empty()) return stalled.set == 0 ? NotWaitingIn(stalled, facts) : missing;
  const bool all_wait = std::ranges::all_of(missing, [&](uint32_t rank) {
    return ClassOf(facts.ranks[rank], stalled.key) == RankClass::kWorking;
  });
  if (!all_wait) return missing;
  std::vector<uint32_t> holding_up = HoldingUp(stalled, facts);
  return holding_up.empty() ? missing : holding_up;
}

// The order in which collectives are reported.
struct Worth {
  bool never = false, others_fault = false;
  int64_t waited_ms = 0;
  auto operator<=>(const Worth&) const = default;
};

Worth WorthOf(const Stalled& stalled, const WorldFacts& facts, const std::set<uint32_t>& never) {
  const std::vector<uint32_t> missing = MissingOf(stalled, facts);
  const bool others = std::ranges::any_of(missing, [&](uint32_t rank) {
    return ClassOf(facts.ranks[rank], stalled.key) != RankClass::kElsewhere;
  });
  return {never.contains(stalled.first), others, stalled.waited_ms};
}

std::string SiteOf(const RankFacts& facts) {
  constexpr size_t kMostSite = 1000;  // its end contains the line number
  return Printable(facts.site, kMostSite);
}

std::string SiteText(const RankFacts& facts) {
  return facts.site.empty() ? "" : " at " + SiteOf(facts);
}

std::string ElsewhereText(const RankFacts& facts, const WorldFacts& world) {
  const WaitFacts* wait = LongestWait(facts);
  if (wait == nullptr) return "";
  std::vector<uint32_t> needs;
  for (uint32_t rank : wait->awaited) {
    if (rank < world.ranks.size() && !HasSubmitted(world.ranks[rank], wait->key))
      needs.push_back(rank);
  }
  std::string text = "it has waited " + Seconds(wait->waited_ms) + " in " + Quote(wait->name);
  if (wait->set > 0) text += Format(" of process set {}", wait->set);
  if (!needs.empty()) text += " for " + List(needs) + " to submit it";
  return text + SiteText(facts);
}

std::string WhatItDoes(RankClass found, const std::optional<RankFacts>& facts,
                       const WorldFacts& world) {
  switch (found) {
    case RankClass::kDead: return " is dead: its process has ended";
    case RankClass::kStopped:
      return " is stopped: by a signal (SIGSTOP, a terminal) or a debugger" + SiteText(*facts);
    case RankClass::kEndedEarly:
      return " ended early: it has left the world by hvd.shutdown() or by its end";
    case RankClass::kElsewhere: return " is in another collective: " + ElsewhereText(*facts, world);
    case RankClass::kBusy: return " is busy in user code" + SiteText(*facts);
    case RankClass::kBlocked:
      return (facts->blocked_in.empty()
                  ? " is blocked in a system call"
                  : " is blocked in the system call " + Printable(facts->blocked_in)) +
             SiteText(*facts);
    case RankClass::kWorking: return " works on it: it waits for data" + SiteText(*facts);
    case RankClass::kUnreachable: return " is unreachable: the agent of its host does not answer";
  }
  return "";
}

std::string History(const RankFacts& facts) {
  if (facts.submitted == 0) return "it has not submitted any collective";
  // If it does not wait, the collective that it submitted last has ended.
  const bool waits = !facts.waits.empty();
  const uint64_t number = waits ? facts.finished : facts.submitted;
  const std::string& name = waits ? facts.last_finished : facts.last;
  if (number == 0) return "no collective of it has ended";
  return Format("its last finished collective was number {}, {}", number, Quote(name));
}

std::string StateText(const std::string& state) {
  if (state == "R") return "running";
  if (state == "S") return "sleeping";
  if (state == "D") return "in an uninterruptible sleep";
  if (state == "T") return "stopped";
  if (state == "t") return "held by a debugger";
  return state;
}

std::string MissingLine(uint32_t rank, const Stalled& stalled, const WorldFacts& world) {
  if (world.hosts[rank].empty())
    return Format("  rank {} is on another host, whose agent cannot be asked.\n", rank);
  const std::optional<RankFacts>& facts = world.ranks[rank];
  const RankClass found = ClassOf(facts, stalled.key);
  std::string line = Format("  rank {} on host {}", rank, world.hosts[rank]);
  if (facts && facts->pid != 0) line += Format(" (pid {})", facts->pid);
  line += WhatItDoes(found, facts, world);
  if (!facts || found == RankClass::kDead || found == RankClass::kEndedEarly) return line + ".\n";
  line += Format(";\n    {}; it uses {} % of a core; its main thread is {}", History(*facts),
                 facts->cpu_percent, StateText(facts->state));
  return line + ".\n";
}

std::string Headline(const Stalled& stalled, const std::vector<uint32_t>& missing,
                     const WorldFacts& facts) {
  const WaitFacts* wait = WaitIn(*facts.ranks[stalled.first], stalled.key);
  std::string text = Format("rank {} has waited {} in {} for ", stalled.first,
                            Seconds(stalled.waited_ms), Quote(stalled.name));
  if (missing.empty()) {
    text += "its data to be moved";
  } else if (stalled.awaited.empty() || (wait != nullptr && wait->submitted != 0)) {
    text += List(missing) + " to finish " + (missing.size() == 1 ? "its part" : "their parts");
  } else {
    text += List(missing) + " to submit it";
  }
  std::vector<uint32_t> others;
  for (uint32_t rank : stalled.waiting) {
    if (rank != stalled.first && (others.empty() || others.back() != rank)) others.push_back(rank);
  }
  if (!others.empty()) text += ", as " + List(others) + (others.size() == 1 ? " does" : " do");
  return text;
}

// A computing rank's current activity does not count as a change.
std::string SituationOf(uint32_t rank, RankClass found, const std::optional<RankFacts>& facts) {
  std::string text = Format("{} {}", rank, static_cast<int>(found));
  if (facts) text += Format(" {} {}", facts->submitted, facts->finished);
  if (facts && found != RankClass::kBusy) text += " " + facts->site;
  return text + "\n";
}

Verdict Make(const Stalled& stalled, const WorldFacts& facts, const std::set<uint32_t>& never) {
  Verdict verdict;
  const std::vector<uint32_t> missing = MissingOf(stalled, facts);
  verdict.never_ends = never.contains(stalled.first);
  verdict.sentence = Headline(stalled, missing, facts);
  const std::string site = SiteOf(*facts.ranks[stalled.first]);
  if (!site.empty()) verdict.details += "  It waits at " + site + ".\n";
  verdict.situation = stalled.name + " " + List(stalled.waiting) + "\n";  // whoever is first
  for (uint32_t rank : missing) {
    const RankClass found = ClassOf(facts.ranks[rank], stalled.key);
    verdict.missing.push_back({rank, found});
    verdict.situation += SituationOf(rank, found, facts.ranks[rank]);
    if (verdict.missing.size() <= kMostLines) verdict.details += MissingLine(rank, stalled, facts);
  }
  if (missing.size() > kMostLines)
    verdict.details += Format("  and {} more ranks.\n", missing.size() - kMostLines);
  return verdict;
}

}  // namespace

const char* ClassName(RankClass found) {
  switch (found) {
    case RankClass::kDead: return "dead";
    case RankClass::kStopped: return "stopped";
    case RankClass::kEndedEarly: return "ended early";
    case RankClass::kElsewhere: return "in another collective";
    case RankClass::kBusy: return "busy";
    case RankClass::kBlocked: return "blocked";
    case RankClass::kWorking: return "working";
    case RankClass::kUnreachable: return "unreachable";
  }
  return "";
}

RankClass ClassOf(const std::optional<RankFacts>& facts, uint64_t awaited_key) {
  if (!facts) return RankClass::kUnreachable;
  if (facts->in_world == 0) return RankClass::kEndedEarly;  // a death would have broken the world
  if (facts->state.empty() || facts->state == "Z" || facts->state == "X") return RankClass::kDead;
  if (facts->state == "T" || facts->state == "t") return RankClass::kStopped;
  if (WaitIn(*facts, awaited_key) != nullptr) return RankClass::kWorking;
  if (!facts->waits.empty()) return RankClass::kElsewhere;
  if (facts->state == "R" || facts->cpu_percent >= kBusyPercent) return RankClass::kBusy;
  return RankClass::kBlocked;
}

std::optional<Verdict> Explain(const WorldFacts& facts, const std::set<uint32_t>& never,
                               int64_t at_least_ms) {
  const Stalled* chosen = nullptr;
  Worth best;
  const std::map<uint64_t, Stalled> all = StalledIn(facts);
  for (const auto& [key, stalled] : all) {
    if (stalled.waited_ms < at_least_ms) continue;
    const Worth worth = WorthOf(stalled, facts, never);
    if (chosen != nullptr && !(worth > best)) continue;
    chosen = &stalled;
    best = worth;
  }
  if (chosen == nullptr) return std::nullopt;
  return Make(*chosen, facts, never);
}

std::string StallText(const Verdict& verdict) {
  std::string text = verdict.sentence + "\n" + verdict.details;
  text.pop_back();
  return text;
}

std::string EndlessText(const Verdict& verdict) {
  return verdict.sentence +
         "; it can never end, because each of the ranks that it needs has ended or waits for "
         "others that wait";
}

}  // namespace hvd
