#include <algorithm>

#include "runtime/base/text/format.h"
#include "timeline/report/quantities.h"
#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

constexpr double kWorthSaying = 0.03;  // of the time

std::string RankName(const RankReport& rank) {
  return rank.label.empty() ? Format("rank {}", rank.number) : rank.label;
}

// "18.2 ms of each step of 42.1 ms", or of the whole time if there are no steps.
std::string PartOfStep(const Report& report, double share) {
  const bool steps = report.median_step_ns > 0;
  int64_t whole = report.median_step_ns;
  if (!steps) {
    for (const RankReport& rank : report.ranks) whole = std::max(whole, rank.time_ns);
  }
  const int64_t part = static_cast<int64_t>(share * static_cast<double>(whole));
  return TimeText(part) + (steps ? " of each step of " : " of ") + TimeText(whole);
}

// For what share of its time the others wait for this rank.
double LostShare(const RankReport& rank) {
  return rank.time_ns > 0
             ? static_cast<double>(rank.lost_by_others_ns) / static_cast<double>(rank.time_ns)
             : 0;
}

// For what share of its time a rank waits for late ones, on average.
double LatenessShare(const Report& report) {
  double sum = 0;
  for (const RankReport& rank : report.ranks) sum += LostShare(rank);
  const double ranks = static_cast<double>(report.ranks.size());
  return ranks > 0 ? sum * (ranks - 1) / ranks : 0;
}

// No rank stands out: the next one delays the others nearly as long.
bool AreLateInTurn(const Report& report) {
  constexpr double kNearly = 0.5;
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    if (i != report.straggler->rank &&
        LostShare(report.ranks[i]) > kNearly * LostShare(report.ranks[report.straggler->rank]))
      return true;
  }
  return false;
}

void AddLateInTurn(const Report& report, std::vector<JobLimit>* findings) {
  const RankReport& worst = report.ranks[report.straggler->rank];
  const double share = LatenessShare(report);
  findings->push_back(
      {share, "Ranks are late in turn, " + RankName(worst) + " most (last for " +
                  ShareText(worst.last_share) + " of the tensors); a rank waits " +
                  PartOfStep(report, share) + " for others: " + ShareText(share) +
                  ". Work differs from step to step, or ranks share cores with each other or with "
                  "other programs."});
}

void AddStraggler(const Report& report, std::vector<JobLimit>* findings) {
  if (!report.straggler || report.straggler->time_share < kWorthSaying) return;
  if (AreLateInTurn(report)) return AddLateInTurn(report, findings);
  const StragglerReport& straggler = *report.straggler;
  const RankReport& rank = report.ranks[straggler.rank];
  std::string sentence = RankName(rank) + " is last for " + ShareText(straggler.last_share) +
                         " of the tensors; the others wait " +
                         PartOfStep(report, straggler.time_share) +
                         " for it: " + ShareText(straggler.time_share) + ".";
  constexpr double kMostOfIt = 0.5;
  if (straggler.tensor_share >= kMostOfIt) {
    sentence += " It falls behind at " + straggler.tensor + " (" +
                ShareText(straggler.tensor_share) +
                " of its delay): look at what it does before it "
                "submits that tensor.";
  } else if (!straggler.tensor.empty()) {
    sentence += " It falls behind little by little, at " +
                CountText(straggler.tensors, "tensor", "tensors") + ", most at " +
                straggler.tensor + ": a slow or shared core, or more work than the others have.";
  }
  findings->push_back({straggler.time_share, sentence});
}

// A slow link of one host delays the results of all, so the arrival of results does not show which
// one it is; the links do.
std::string AboutLinks(const Report& report) {
  const std::optional<SlowLinks> found = FindSlowLinks(report.links);
  if (!found) return "";
  const std::string speeds = RateText(found->slow) + ", the others " + RateText(found->others);
  if (found->host)
    return " All links of host " + report.hosts[*found->host].name + " are slow: " + speeds + ".";
  return " The link from host " + report.hosts[found->slowest->from].name + " to host " +
         report.hosts[found->slowest->to].name + " is slow: " + speeds + ".";
}

std::string AboutHosts(const Report& report) {
  if (report.hosts.size() < 2) return "";
  const auto slowest = std::max_element(
      report.hosts.begin(), report.hosts.end(),
      [](const HostSpeed& a, const HostSpeed& b) { return a.behind_ns < b.behind_ns; });
  return " Between hosts, large tensors move at " + RateText(slowest->bytes_per_second) + "." +
         AboutLinks(report);
}

void AddCommunication(const Report& report, std::vector<JobLimit>* findings) {
  double waits = 0, hidden = 0;
  size_t ranks = 0, compared = 0;
  for (const RankReport& rank : report.ranks) {
    if (rank.communication_share <= 0) continue;
    waits += rank.wait_share;
    ++ranks;
    // Behind the straggler's work, everything is hidden.
    if (report.straggler && report.straggler->time_share >= kWorthSaying &&
        &rank == &report.ranks[report.straggler->rank])
      continue;
    hidden += rank.hidden_share;
    ++compared;
  }
  if (compared == 0) return;
  const double share = waits / static_cast<double>(ranks) - LatenessShare(report);
  if (share < kWorthSaying) return;
  findings->push_back(
      {share, "Ranks wait " + PartOfStep(report, share) +
                  " for communication that nothing hides: " + ShareText(share) + ". " +
                  ShareText(hidden / static_cast<double>(compared)) +
                  " of the time that communication takes is hidden behind computing." +
                  AboutHosts(report)});
}

void AddNoLimit(const Report& report, std::vector<JobLimit>* findings) {
  double waits = 0;
  for (const RankReport& rank : report.ranks) waits = std::max(waits, rank.wait_share);
  findings->push_back({0, "Computing limits the job: no rank waits for more than " +
                              ShareText(waits) + " of the time."});
}

}  // namespace

std::vector<JobLimit> FindingsOf(const Report& report) {
  std::vector<JobLimit> findings;
  AddStraggler(report, &findings);
  AddCommunication(report, &findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const JobLimit& a, const JobLimit& b) { return a.share > b.share; });
  const bool worked = std::any_of(report.ranks.begin(), report.ranks.end(),
                                  [](const RankReport& r) { return r.communication_share > 0; });
  if (findings.empty() && worked) AddNoLimit(report, &findings);
  if (!worked)
    findings.push_back({0,
                        "There is no operation with a beginning and an end in this trace, so "
                        "nothing can be said about waiting."});
  if (const uint64_t lost = report.lost_records + report.not_written; lost > 0)
    findings.push_back({0, CountText(lost, "event is", "events are") +
                               " missing in the trace: what is said here is about the rest."});
  return findings;
}

}  // namespace hvd
