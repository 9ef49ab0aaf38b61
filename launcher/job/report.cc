#include "launcher/job/report.h"

#include <csignal>
#include <cstring>

#include "launcher/text/rank_ranges.h"
#include "launcher/text/sentence_end.h"

namespace hvd {
namespace {

std::string SignalText(int signal) {
  std::string name = SignalName(signal);
  std::string text = "signal " + std::to_string(signal);
  return name.empty() ? text : text + " (" + name + ")";
}

// What a signal usually means, for those whose name does not say it.
std::string Meaning(int signal) {
  switch (signal) {
    case SIGSEGV: return ": invalid memory access (segmentation fault)";
    case SIGABRT: return ": it called abort()";
    case SIGBUS: return ": a file or shared memory that it had mapped is gone or full";
    case SIGILL: return ": its program holds an instruction that this CPU does not know";
    case SIGFPE: return ": it divided an integer by zero";
    case SIGXFSZ: return ": it wrote a file larger than its limit allows (ulimit -f)";
    case SIGKILL: return ", sent by a process, not by the OOM killer";
    case SIGTERM:
    case SIGINT:
    case SIGHUP: return ", sent by a process that is not part of hvdrun";
    default: return "";
  }
}

std::string Who(const JobState& state, uint32_t rank) {
  const std::string& host = state.plan.hosts[state.plan.ranks[rank].host];
  return "rank " + std::to_string(rank) + " on host " + host + " (pid " +
         std::to_string(state.ranks[rank].pid) + ")";
}

std::string Indented(const std::string& text) {
  std::string out = "    ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out + "\n";
}

std::string Others(size_t count) {
  if (count == 0) return "";
  return "  " + std::to_string(count) + (count == 1 ? " other rank was" : " other ranks were") +
         " ended because of it.\n";
}

// An error in what all ranks run is one error.
std::vector<uint32_t> FailedAlike(const JobState& state, uint32_t cause) {
  std::vector<uint32_t> alike;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    if (r != cause && rank.end && !rank.end->ok() && !rank.ended_by_us &&
        rank.last_stderr == state.ranks[cause].last_stderr)
      alike.push_back(r);
  }
  return alike;
}

std::string RankReport(const JobState& state) {
  std::optional<uint32_t> cause = FirstFailedRank(state);
  if (!cause) return "hvdrun: the job failed.\n";
  const RankRecord& rank = state.ranks[*cause];
  const bool left_its_peers = rank.end && rank.end->ok();
  std::string text = "hvdrun: " + Who(state, *cause) +
                     (left_its_peers ? " ended too early (" + DescribeCause(rank) + ").\n"
                                     : " failed: " + DescribeCause(rank) + ".\n");
  if (rank.lost && !rank.ended_by_us) {
    text += "  It had called hvd.init() and not hvd.shutdown()" + rank.doing + ".\n";
  }
  size_t alike_count = 0;
  if (!rank.last_stderr.empty()) {
    text += "  Its last lines on stderr:\n" + Indented(rank.last_stderr);
    const std::vector<uint32_t> alike = FailedAlike(state, *cause);
    alike_count = alike.size();
    if (!alike.empty())
      text += std::string(alike.size() == 1 ? "  Rank " : "  Ranks ") + RankRanges(alike) +
              " failed with the same words.\n";
  }
  return text + Others(CountEndedBecause(state, *cause) - alike_count);
}

// The rank that ended the generation is not the one to blame: it waited for others, and knows them
// by name at best.
std::string EndingReport(const JobState& state) {
  std::string text;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (!state.ranks[r].stopped) continue;
    text += (text.empty() ? "hvdrun: " : "; ") + Who(state, r) + " is stopped by a signal";
  }
  const std::string& reason = state.failure->reason;
  const std::string sentence = text.empty() ? "hvdrun: " + reason : text + ".\n  So " + reason;
  return WithStop(sentence) + "\n  All ranks were ended.\n";
}

}  // namespace

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "" : std::string("SIG") + name;
}

std::string DescribeEnd(const ProcessEnd& end) {
  return end.by_signal ? SignalText(end.value) : "exit code " + std::to_string(end.value);
}

std::string DescribeCause(const RankRecord& rank) {
  if (!rank.end) return "it was lost";
  std::string text = DescribeEnd(*rank.end);
  if (rank.out_of_memory) {
    return text +
           ": the kernel ended it for lack of memory; try fewer processes per host or smaller "
           "batches";
  }
  if (rank.end->by_signal && !rank.ended_by_us) text += Meaning(rank.end->value);
  return text;
}

const char* RankStateName(const RankRecord& rank) {
  if (rank.pid == 0) return "not_started";
  if (!rank.end) return "lost";
  if (rank.ended_by_us) return "ended";
  if (!rank.end->ok()) return "failed";
  return rank.lost ? "left" : "succeeded";
}

size_t CountEndedBecause(const JobState& state, uint32_t cause) {
  size_t count = 0;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    if (r != cause && rank.pid != 0 && !(rank.end && rank.end->ok())) ++count;
  }
  return count;
}

std::string Report(const JobState& state) {
  if (!state.failure) return "";
  const JobFailure& failure = *state.failure;
  switch (failure.kind) {
    case JobFailure::Kind::kRank: return RankReport(state);
    case JobFailure::Kind::kHost:
      return WithStop("hvdrun: host " + state.plan.hosts[failure.host] +
                      " was lost: " + failure.reason) +
             " All ranks were ended.\n";
    case JobFailure::Kind::kHosts: return "hvdrun: " + failure.reason;
    case JobFailure::Kind::kInterrupt:
      return "hvdrun: ended by " + SignalText(failure.signal) + "; all ranks were ended.\n";
    case JobFailure::Kind::kEnding: return EndingReport(state);
    case JobFailure::Kind::kWay:
      return WithStop("hvdrun: " + failure.reason) + "\n  All ranks were ended.\n";
    case JobFailure::Kind::kCommand:
    case JobFailure::Kind::kTimeout:
    case JobFailure::Kind::kInternal: return WithStop("hvdrun: " + failure.reason) + "\n";
  }
  return "";
}

}  // namespace hvd
