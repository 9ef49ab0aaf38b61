#include "launcher/job/report/report.h"

#include <cstdint>
#include <string_view>

#include "launcher/job/report/job_result.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

std::string Who(const JobState& state, uint32_t rank) {
  const std::string& host = state.plan.hosts[state.plan.ranks[rank].host];
  return Format("rank {} on host {} (pid {})", state.ranks[rank].rank, host, state.ranks[rank].pid);
}

// Lines of a rank, without control characters: these would act on the user's terminal, which shows
// this block long after the rank's own output.
std::string Indented(std::string_view text) {
  constexpr size_t kWhole = SIZE_MAX;
  std::string out = "    ";
  while (true) {
    const size_t end = text.find_first_of("\n\t");
    out += Printable(text.substr(0, end), kWhole);
    if (end == std::string_view::npos) return out + "\n";
    out += text[end] == '\n' ? "\n    " : "\t";
    text.remove_prefix(end + 1);
  }
}

std::string Others(size_t count) {
  if (count == 0) return "";
  return Format("  {}{} ended because of it.\n", count,
                count == 1 ? " other rank was" : " other ranks were");
}

// The same error in all ranks is reported once.
std::vector<uint32_t> FailedAlike(const JobState& state, uint32_t cause) {
  const std::string& words = state.ranks[cause].end->last_stderr;
  std::vector<uint32_t> alike;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    if (r != cause && rank.failed() && rank.end && !rank.end->ok() &&
        rank.end->last_stderr == words)
      alike.push_back(rank.rank);
  }
  return alike;
}

// The exception of the last traceback with its message; empty: there is no whole traceback.
std::string_view ExceptionIn(std::string_view last_stderr) {
  constexpr std::string_view kHead = "Traceback (most recent call last):\n";
  const size_t head = last_stderr.rfind(kHead);
  if (head == std::string_view::npos) return {};
  std::string_view rest = last_stderr.substr(head + kHead.size());
  while (rest.starts_with(' ')) {  // frames are indented
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  return rest;
}

std::string LastLinesOf(std::string_view last_stderr, TracebackPlace traceback) {
  const std::string_view exception = ExceptionIn(last_stderr);
  if (traceback == TracebackPlace::kInReport || exception.empty())
    return "  Its last lines on stderr:\n" + Indented(last_stderr);
  return "  Its traceback is above; it ends with:\n" + Indented(exception);
}

std::string RankReport(const JobState& state, TracebackPlace traceback) {
  std::optional<uint32_t> cause = FirstFailedRank(state);
  if (!cause) return "hvdrun: the job failed.\n";
  const RankRecord& rank = state.ranks[*cause];
  const bool left_its_peers = rank.end && rank.end->ok();
  std::string text = "hvdrun: " + Who(state, *cause) +
                     (left_its_peers ? " ended too early (" + DescribeCause(rank) + ").\n"
                                     : " failed: " + DescribeCause(rank) + ".\n");
  if (rank.loss) {
    text += "  It had called hvd.init() and not hvd.shutdown()" + rank.loss->doing + ".\n";
  }
  if (rank.awaited) text += "  Other ranks waited in hvd.init() for it to call that, too.\n";
  size_t alike_count = 0;
  if (rank.end && !rank.end->last_stderr.empty()) {
    text += LastLinesOf(rank.end->last_stderr, traceback);
    const std::vector<uint32_t> alike = FailedAlike(state, *cause);
    alike_count = alike.size();
    if (!alike.empty())
      text += std::string(alike.size() == 1 ? "  Rank " : "  Ranks ") + RankRanges(alike) +
              " failed with the same words.\n";
  }
  return text + Others(CountEndedBecause(state, *cause) - alike_count);
}

// The rank that ended the generation is not to blame: it waited for others, and at best knows
// which.
std::string EndingReport(const JobState& state) {
  std::string text;
  for (uint32_t r : state.stopped) {
    text += (text.empty() ? "hvdrun: " : "; ") + Who(state, r) + " is stopped by a signal";
  }
  const std::string& reason = state.failure->reason;
  const std::string sentence = text.empty() ? "hvdrun: " + reason : text + ".\n  So " + reason;
  return WithStop(sentence) + "\n  All ranks were ended.\n";
}

// The ranks of all other hosts had finished before this host was lost.
bool OthersHadFinished(const JobState& state, uint32_t host) {
  bool others = false;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (state.plan.ranks[r].host == host) continue;
    if (!state.ranks[r].end || !state.ranks[r].end->ok()) return false;
    others = true;
  }
  return others && !state.asked_at;
}

}  // namespace

size_t CountEndedBecause(const JobState& state, uint32_t cause) {
  size_t count = 0;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    if (r == cause || rank.pid == 0 || rank.forgiven) continue;
    if (!(rank.end && rank.end->ok())) ++count;
  }
  return count;
}

std::string Report(const JobState& state, TracebackPlace traceback) {
  if (!state.failure) {
    if (ExitCode(state) != kStoppedExitCode) return "";
    return Format(
        "hvdrun: the ranks left after their step, as {} asks; exit code {}: start the "
        "job again to go on.\n",
        SignalText(StopSignal(state)), kStoppedExitCode);
  }
  const JobFailure& failure = *state.failure;
  switch (failure.kind) {
    case JobFailure::Kind::kRank: return RankReport(state, traceback);
    case JobFailure::Kind::kHost:
      return WithStop("hvdrun: host " + state.plan.hosts[failure.host] +
                      " was lost: " + failure.reason) +
             (OthersHadFinished(state, failure.host)
                  ? " The ranks of all other hosts had finished.\n"
                  : " All ranks were ended.\n");
    case JobFailure::Kind::kHosts: return "hvdrun: " + failure.reason;
    case JobFailure::Kind::kInterrupt:
      return "hvdrun: ended by " + SignalText(failure.signal) + "; all ranks were ended.\n";
    case JobFailure::Kind::kEnding: return EndingReport(state);
    case JobFailure::Kind::kStall:
      if (failure.verdict.details.empty()) return EndingReport(state);
      return WithStop("hvdrun: " + failure.reason) + "\n" + failure.verdict.details +
             "  All ranks were ended.\n";
    case JobFailure::Kind::kRoute:
      return WithStop("hvdrun: " + failure.reason) + "\n  All ranks were ended.\n";
    case JobFailure::Kind::kLauncher:
      return WithStop("hvdrun: " + failure.reason) +
             (state.generation > 0 ? " All ranks were ended.\n" : "\n");
    case JobFailure::Kind::kCommand:
    case JobFailure::Kind::kTimeout:
    case JobFailure::Kind::kInternal: return WithStop("hvdrun: " + failure.reason) + "\n";
  }
  return "";
}

}  // namespace hvd
