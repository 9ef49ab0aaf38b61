#include "launcher/stall/verdict/script_verdict.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// More CPU time than a library's housekeeping threads use.
constexpr uint32_t kWorkPermille = 20;
constexpr uint64_t kWorkBytes = 64 * 1024;
constexpr size_t kMostGroups = 16;

using Rank = ScriptRank;
using Ranks = std::vector<const Rank*>;

bool IsOneOf(std::string_view name, auto... names) { return ((name == names) || ...); }
bool Has(std::string_view text, auto... parts) {
  return ((text.find(parts) != std::string_view::npos) || ...);
}

bool IsStoppedNow(const ScriptObservation& seen) { return IsOneOf(seen.state, "T", "t"); }
bool Sleeps(const ScriptObservation& seen) { return IsOneOf(seen.state, "S", "D"); }
bool Works(const ScriptObservation& seen) {
  return seen.cpu_permille >= kWorkPermille || seen.bytes_moved >= kWorkBytes;
}
// One that polls may be running just now.
bool Computes(const ScriptObservation& seen, int64_t warning_ms) {
  return seen.cpu_permille >= kWorkPermille ||
         (seen.state == "R" && seen.still_ms >= warning_ms / 4);
}
bool IsStill(const ScriptObservation& seen, int64_t warning_ms) {
  return seen.still_ms >= warning_ms && (Sleeps(seen) || IsStoppedNow(seen));
}

// NCCL and MPI spin. A loop that calls them repeatedly sleeps occasionally.
bool Spins(const ScriptObservation& seen, int64_t warning_ms) {
  return seen.state == "R" && seen.still_ms >= warning_ms && seen.cpu_permille >= kWorkPermille &&
         seen.same_ms >= warning_ms && seen.may_compute == 0;
}

// How long a rank has certainly been in its collective; 0: it is in none, or that is not certain.
// Being seen at the same line twice is no proof: a loop returns there.
int64_t WaitedMs(const ScriptObservation& seen, int64_t warning_ms) {
  if (seen.call.empty() || IsStoppedNow(seen)) return 0;
  // It has not woken up since before its stack was read.
  if (IsStill(seen, warning_ms) && seen.sample_ms <= seen.still_ms)
    return seen.may_compute != 0 && Works(seen) ? 0 : seen.still_ms;
  if (Spins(seen, warning_ms)) return std::min(seen.still_ms, seen.same_ms);
  return seen.once != 0 ? seen.same_ms : 0;
}

// It waits and provably has done nothing else.
bool IsFirm(const ScriptObservation& seen, int64_t warning_ms) {
  return IsStill(seen, warning_ms) ? !Works(seen) : Spins(seen, warning_ms);
}

// What is known about it is too little or too old to say what it does now.
bool IsUnclear(const ScriptRank& rank, int64_t warning_ms) {
  if (rank.left || IsStoppedNow(*rank.seen)) return false;
  const ScriptObservation& seen = *rank.seen;
  if (seen.sampled == 0) return seen.trouble.empty();
  if (IsStill(seen, warning_ms)) return seen.sample_ms > seen.still_ms;
  if (!seen.call.empty() && (seen.may_compute == 0 || Sleeps(seen))) return true;
  const bool works = Works(seen) || Computes(seen, warning_ms);
  return works ? seen.sample_ms > warning_ms / 4 : seen.same_ms < warning_ms;
}

std::string RankList(const Ranks& ranks) {
  std::vector<uint32_t> numbers;
  for (const Rank* rank : ranks) numbers.push_back(rank->rank);
  return (numbers.size() == 1 ? "rank " : "ranks ") + RankRanges(numbers);
}

std::string HostList(const Ranks& ranks) {
  std::vector<std::string> hosts;
  for (const Rank* rank : ranks) {
    if (std::ranges::find(hosts, rank->host) == hosts.end()) hosts.push_back(rank->host);
  }
  std::string text = hosts.size() == 1 ? " on host " : " on hosts ";
  for (const std::string& host : hosts) text += (&host == hosts.data() ? "" : ", ") + host;
  if (ranks.size() == 1 && ranks[0]->seen) text += Format(" (pid {})", ranks[0]->seen->pid);
  return text;
}

std::string At(const std::string& site) {
  constexpr size_t kMostSite = 1000;
  return site.empty() ? "" : " at " + Printable(site, kMostSite);
}

std::string CallText(const ScriptObservation& seen) { return Printable(seen.call) + At(seen.site); }

ScriptClass ClassByCall(const ScriptObservation& seen) {
  const std::string_view call = seen.blocked_in;
  if (Has(call, "sync")) return ScriptClass::kDisk;
  if (Has(call, "nanosleep") || IsOneOf(call, "pause", "rt_sigtimedwait", "rt_sigsuspend"))
    return ScriptClass::kSleeps;
  // time.sleep() before Python 3.11.
  if (IsOneOf(call, "select", "pselect6") && seen.sampled != 0 && seen.inside.empty())
    return ScriptClass::kSleeps;
  if (Has(call, "futex", "flock", "locks_lock") || IsOneOf(call, "fcntl", "semop", "semtimedop"))
    return ScriptClass::kLock;
  if (IsOneOf(call, "wait4", "waitid", "do_wait")) return ScriptClass::kChild;
  if (Has(call, "poll", "select", "recv", "send", "accept", "connect", "sk_", "inet"))
    return ScriptClass::kNetwork;
  if (Has(call, "read", "write", "open", "stat", "close", "ioctl", "splice", "fuse", "nfs", "rpc"))
    return ScriptClass::kFile;
  return ScriptClass::kUnknown;
}

std::string ClassText(ScriptClass found, const Rank& rank) {
  const std::string in =
      rank.seen && !rank.seen->inside.empty() ? " in " + Printable(rank.seen->inside, 120) : "";
  const std::string call = rank.seen && !rank.seen->blocked_in.empty()
                               ? Format(" (blocked in {})", Printable(rank.seen->blocked_in))
                               : "";
  const std::string at = rank.seen ? At(rank.seen->site) : "";
  switch (found) {
    case ScriptClass::kLeft: return "has ended";
    case ScriptClass::kStopped:
      return "is stopped by a signal (SIGSTOP, a terminal) or a debugger" + at;
    case ScriptClass::kSleeps: return "sleeps" + in + at;
    case ScriptClass::kLock: return "waits for a lock" + in + at + call;
    case ScriptClass::kFile: return "waits for a file" + in + at + call;
    case ScriptClass::kWaits: return "waits in " + CallText(*rank.seen);
    case ScriptClass::kBusy: return "is busy" + in + at;
    case ScriptClass::kMoves: return "reads or writes" + in + at;
    case ScriptClass::kPolls: return "sleeps again and again" + in + at;
    case ScriptClass::kDisk: return "waits for a disk" + in + at + call;
    case ScriptClass::kNetwork: return "waits for data" + in + at + call;
    case ScriptClass::kChild: return "waits for a process that it has started" + in + at;
    case ScriptClass::kUnknown: break;
  }
  std::string text = "does something else" + at + call;
  if (rank.seen && !rank.seen->trouble.empty())
    text = "cannot be looked into" + call + ": " + Printable(rank.seen->trouble, 300);
  return text;
}

RankClass KnownClass(ScriptClass found) {
  switch (found) {
    case ScriptClass::kLeft: return RankClass::kEndedEarly;
    case ScriptClass::kStopped: return RankClass::kStopped;
    case ScriptClass::kWaits: return RankClass::kElsewhere;
    case ScriptClass::kBusy:
    case ScriptClass::kMoves: return RankClass::kBusy;
    default: return RankClass::kBlocked;
  }
}

// Ranks that do the same at the same line, by their text.
using Groups = std::vector<std::pair<std::string, Ranks>>;

void AddTo(Groups& groups, const std::string& text, const Rank& rank) {
  const auto found = std::ranges::find(groups, text, &Groups::value_type::first);
  if (found == groups.end()) {
    groups.push_back({text, {&rank}});
  } else {
    found->second.push_back(&rank);
  }
}

std::string Lines(const Groups& groups, const char* verb = "") {
  std::string lines;
  for (size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i)
    lines += "  " + RankList(groups[i].second) + HostList(groups[i].second) + verb + " " +
             groups[i].first + ".\n";
  if (groups.size() > kMostGroups)
    lines += Format("  and {} more groups of ranks.\n", groups.size() - kMostGroups);
  return lines;
}

std::string KeyOf(const Groups& groups) {
  std::string key;
  for (const auto& [text, ranks] : groups) key += RankList(ranks) + " " + text + "\n";
  return key;
}

struct Sorted {
  Groups waiting, missing;  // by call and line; by class and line
  Ranks all_waiting, all_missing;
  int64_t waited_ms = 0;  // the longest
  bool firm = true, may_be_work = false, unclear = false;
  std::string busy_key;  // of the missing ones, without lines that keep changing
};

void Sort(const Rank& rank, int64_t warning_ms, Sorted& sorted) {
  const int64_t waited = rank.seen ? WaitedMs(*rank.seen, warning_ms) : 0;
  if (waited >= warning_ms) {
    sorted.waited_ms = std::max(sorted.waited_ms, waited);
    sorted.firm = sorted.firm && IsFirm(*rank.seen, warning_ms);
    sorted.all_waiting.push_back(&rank);
    return AddTo(sorted.waiting, CallText(*rank.seen), rank);
  }
  sorted.unclear = sorted.unclear || IsUnclear(rank, warning_ms);
  const ScriptClass found = ScriptClassOf(rank, warning_ms);
  sorted.may_be_work = sorted.may_be_work || MayBeWork(found);
  sorted.all_missing.push_back(&rank);
  AddTo(sorted.missing, ClassText(found, rank), rank);
  sorted.busy_key += Format("{} {} ", rank.rank, static_cast<int>(found));
  if (!MayBeWork(found) && rank.seen) sorted.busy_key += rank.seen->site;
}

std::string WholeSeconds(int64_t ms) { return Format("{} s", ms / 1000); }

// "ranks 0-1 have waited 60 s in all_reduce at train.py:41 in step"
std::string WaitText(const Groups::value_type& group, int64_t ms) {
  return RankList(group.second) + (group.second.size() == 1 ? " has" : " have") + " waited " +
         WholeSeconds(ms) + " in " + group.first;
}

// The ranks whose stacks would be informative but cannot be read: all that is known is that nothing
// moves.
ScriptVerdict NothingMoves(const std::vector<Rank>& ranks, int64_t warning_ms) {
  ScriptVerdict found;
  int64_t still_ms = INT64_MAX;
  std::string trouble;
  Groups groups;
  for (const Rank& rank : ranks) {
    if (rank.left) continue;
    const ScriptObservation& seen = *rank.seen;
    if (!IsStill(seen, warning_ms) || Works(seen)) return {};
    still_ms = std::min(still_ms, seen.still_ms);
    if (seen.sampled == 0 && trouble.empty()) trouble = seen.trouble;
    std::string text = IsStoppedNow(seen) ? "is stopped" : "sleeps";
    if (!seen.blocked_in.empty()) text += Format(" in {}", Printable(seen.blocked_in));
    AddTo(groups, text + At(seen.site), rank);
    found.verdict.missing.push_back({rank.rank, RankClass::kBlocked});
  }
  const bool all_stopped = std::ranges::all_of(
      ranks, [](const Rank& rank) { return rank.left || IsStoppedNow(*rank.seen); });
  if (trouble.empty() || all_stopped) return {};  // Ctrl-Z stops them all
  found.kind = ScriptVerdict::Kind::kNotice;
  found.waited_ms = still_ms;
  found.verdict.sentence =
      Format("no rank has moved for {}; in which lines they wait is not known: {}",
             WholeSeconds(still_ms), Printable(trouble, 300));
  found.verdict.details = Lines(groups);
  found.key = KeyOf(groups);
  return found;
}

// The line about a rank that the sentence has described.
std::string Facts(const Rank& rank) {
  const std::string who = "  " + RankList({&rank}) + HostList({&rank});
  if (rank.left || !rank.seen) return who + " has ended.\n";
  const ScriptObservation& seen = *rank.seen;
  std::string text = who + (IsStoppedNow(seen) ? " was stopped " : " has not woken up for ") +
                     WholeSeconds(seen.still_ms) + (IsStoppedNow(seen) ? " ago" : "");
  if (!seen.blocked_in.empty()) text += ", in the system call " + Printable(seen.blocked_in);
  return text + ".\n";
}

ScriptVerdict Finish(ScriptVerdict found, const Sorted& sorted, bool hangs) {
  found.kind = hangs ? ScriptVerdict::Kind::kHang : ScriptVerdict::Kind::kNotice;
  found.key += hangs ? "hang" : "";
  found.waited_ms = sorted.waited_ms;
  return found;
}

ScriptVerdict EachWaits(const Sorted& sorted) {
  ScriptVerdict found;
  const bool same = sorted.waiting.size() == 1;
  const bool hangs = sorted.firm && !same;
  Verdict& verdict = found.verdict;
  if (same) {
    verdict.sentence = "all ranks have waited " + WholeSeconds(sorted.waited_ms) + " in " +
                       sorted.waiting[0].first +
                       "; look for a rank that called it for another tensor or more often than "
                       "the others, and for the network between the hosts";
  } else {
    verdict.sentence = Format("{}ranks have waited {} in different calls of collectives",
                              hangs ? "the job hangs: " : "", WholeSeconds(sorted.waited_ms));
  }
  verdict.details = Lines(sorted.waiting, sorted.all_waiting.size() == 1 ? " is in" : " in");
  for (const Rank* rank : sorted.all_waiting)
    verdict.missing.push_back({rank->rank, RankClass::kElsewhere});
  found.key = KeyOf(sorted.waiting);
  return Finish(std::move(found), sorted, hangs);
}

ScriptVerdict SomeAreMissing(const Sorted& sorted, int64_t warning_ms) {
  ScriptVerdict found;
  Verdict& verdict = found.verdict;
  const bool hangs = sorted.firm && !sorted.may_be_work;
  verdict.sentence = (hangs ? "the job hangs: " : "") +
                     WaitText(sorted.waiting[0], sorted.waited_ms) + " for " +
                     RankList(sorted.all_missing);
  const bool one = sorted.missing.size() == 1;
  if (one && sorted.all_missing.size() == 1)
    verdict.sentence += ", which " + sorted.missing[0].first;
  if (sorted.waiting.size() > 1) verdict.details += Lines(sorted.waiting, " in");
  if (!one || sorted.all_missing.size() > 1) {
    verdict.details += Lines(sorted.missing);
  } else if (hangs) {
    verdict.details += Facts(*sorted.all_missing[0]);
  }
  for (const Rank* rank : sorted.all_missing)
    verdict.missing.push_back({rank->rank, KnownClass(ScriptClassOf(*rank, warning_ms))});
  found.key = KeyOf(sorted.waiting) + sorted.busy_key;
  return Finish(std::move(found), sorted, hangs);
}

}  // namespace

ScriptClass ScriptClassOf(const ScriptRank& rank, int64_t warning_ms) {
  if (rank.left) return ScriptClass::kLeft;
  if (!rank.seen) return ScriptClass::kUnknown;
  const ScriptObservation& seen = *rank.seen;
  if (IsStoppedNow(seen)) return ScriptClass::kStopped;
  if (Computes(seen, warning_ms)) return ScriptClass::kBusy;
  if (seen.bytes_moved >= kWorkBytes) return ScriptClass::kMoves;
  if (seen.sampled == 0) return ScriptClass::kUnknown;
  if (seen.still_ms < warning_ms) return ScriptClass::kPolls;
  return seen.call.empty() ? ClassByCall(seen) : ScriptClass::kWaits;
}

bool MayBeWork(ScriptClass found) {
  switch (found) {
    case ScriptClass::kLeft:
    case ScriptClass::kStopped:
    case ScriptClass::kSleeps:
    case ScriptClass::kLock:
    case ScriptClass::kFile:
    case ScriptClass::kWaits: return false;
    default: return true;
  }
}

ScriptVerdict ExplainScript(const std::vector<ScriptRank>& ranks, int64_t warning_ms) {
  const bool any_moves = std::ranges::any_of(ranks, [&](const ScriptRank& rank) {
    return !rank.left && (!rank.seen || rank.seen->silent_ms < warning_ms / 2);
  });
  const bool all_left = std::ranges::all_of(ranks, &ScriptRank::left);
  if (any_moves || all_left || warning_ms <= 0) return {};
  Sorted sorted;
  for (const ScriptRank& rank : ranks) Sort(rank, warning_ms, sorted);
  if (sorted.unclear) return {.kind = ScriptVerdict::Kind::kUnclear, .key = "", .verdict = {}};
  if (sorted.all_waiting.empty()) return NothingMoves(ranks, warning_ms);
  return sorted.all_missing.empty() ? EachWaits(sorted) : SomeAreMissing(sorted, warning_ms);
}

}  // namespace hvd
