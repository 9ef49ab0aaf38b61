#include "timeline/report/analysis.h"

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/base/quantile.h"
#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

constexpr size_t kMostReportedTensors = 100;

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double HiddenShare(const TimeSpent& spent) {
  return spent.communicated > 0 ? 1 - Share(spent.exposed, spent.communicated) : 0;
}

TimeSpent Difference(const TimeSpent& a, const TimeSpent& b) {
  return {a.waited - b.waited, a.communicated - b.communicated, a.exposed - b.exposed,
          a.negotiated - b.negotiated};
}

// The part of a rank's time that the report covers.
struct Window {
  TimeRange range;
  TimeSpent spent;
};

// If there are enough steps, the first one is left out: it is a warm-up.
Window WindowOf(const RankHistory& rank, const Steps& steps) {
  constexpr size_t kEnough = 5;
  if (steps.begins.size() < 2) return {{rank.first_ns, rank.last_ns}, rank.spent};
  const size_t first = steps.begins.size() > kEnough ? 1 : 0;
  const OperationTimes& begin = rank.operations[steps.begins[first]];
  const OperationTimes& end = rank.operations[steps.begins.back()];
  return {{begin.submit_ns, end.submit_ns}, Difference(end.before, begin.before)};
}

void AddSteps(const RankHistory& rank, const Steps& steps, RankReport* report) {
  for (size_t i = 1; i < steps.begins.size(); ++i) {
    const OperationTimes& begin = rank.operations[steps.begins[i - 1]];
    const OperationTimes& end = rank.operations[steps.begins[i]];
    report->step_begin_ns.push_back(begin.submit_ns);
    report->step_ns.push_back(end.submit_ns - begin.submit_ns);
    report->step_hidden_share.push_back(HiddenShare(Difference(end.before, begin.before)));
  }
  report->median_step_ns = Median(report->step_ns);
  report->slow_step_ns = Quantile(report->step_ns, 0.9);
}

RankReport ReportOf(const RankHistory& rank, const Steps& steps, const Window& window) {
  RankReport report;
  report.number = rank.number;
  report.label = rank.label;
  report.host = rank.host;
  report.lost_records = rank.lost;
  AddSteps(rank, steps, &report);
  report.time_ns = window.range.end_ns - window.range.begin_ns;
  report.wait_share = Share(window.spent.waited, report.time_ns);
  report.communication_share = Share(window.spent.communicated, report.time_ns);
  report.negotiation_share = Share(window.spent.negotiated, report.time_ns);
  report.hidden_share = HiddenShare(window.spent);
  return report;
}

void AddTensors(const TraceFacts& facts, Report* report) {
  std::vector<TensorReport> tensors(facts.tensors.size());
  std::vector<int64_t> in_rank(tensors.size()), all(tensors.size()), ended(tensors.size());
  for (const RankHistory& rank : facts.ranks) {
    std::fill(in_rank.begin(), in_rank.end(), 0);
    for (const OperationTimes& operation : rank.operations) {
      TensorReport& tensor = tensors[operation.tensor];
      ++tensor.operations;
      tensor.bytes += operation.bytes;
      if (operation.end_ns < 0) continue;
      in_rank[operation.tensor] += operation.end_ns - operation.submit_ns;
      all[operation.tensor] += operation.end_ns - operation.submit_ns;
      ++ended[operation.tensor];
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i].total_ns = std::max(tensors[i].total_ns, in_rank[i]);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = facts.tensors[i];
    tensors[i].first_place = i;
    tensors[i].in_flight_ns = ended[i] > 0 ? all[i] / ended[i] : 0;
    tensors[i].late_ns.resize(facts.ranks.size());
  }
  for (const LateMark& mark : facts.late) tensors[mark.tensor].late_ns[mark.rank] += mark.late_ns;
  std::erase_if(tensors, [](const TensorReport& tensor) { return tensor.operations == 0; });
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  report->tensors_in_all = tensors.size();
  if (tensors.size() > kMostReportedTensors) tensors.resize(kMostReportedTensors);
  report->tensors = std::move(tensors);
}

void AddSizes(const TraceFacts& facts, Report* report) {
  constexpr uint64_t kFactor = 10, kFirst = 1000;
  struct Class {
    uint64_t operations = 0, bytes = 0;
    std::vector<int64_t> times;
  };
  std::map<uint64_t, Class> classes;  // by the first size that is too large
  for (const RankHistory& rank : facts.ranks) {
    for (const OperationTimes& operation : rank.operations) {
      if (operation.start_ns < 0 || operation.end_ns < 0 || operation.bytes == 0) continue;
      uint64_t limit = kFirst;
      while (limit <= operation.bytes && limit < uint64_t{1} << 50) limit *= kFactor;
      Class& size = classes[limit];
      ++size.operations;
      size.bytes += operation.bytes;
      size.times.push_back(operation.end_ns - operation.start_ns);
    }
  }
  for (const auto& [limit, size] : classes) {
    int64_t in_all = 0;
    for (int64_t time : size.times) in_all += time;
    const double rate =
        in_all > 0 ? static_cast<double>(size.bytes) * 1e9 / static_cast<double>(in_all) : 0;
    report->sizes.push_back({limit == kFirst ? 0 : limit / kFactor, limit, size.operations,
                             size.bytes, Median(size.times), rate});
  }
}

void AddActivities(const TraceFacts& facts, Report* report) {
  for (const ActivityFacts& activity : facts.activities) {
    if (activity.times == 0) continue;
    report->activities.push_back({activity.name, activity.times, activity.bytes,
                                  activity.total_ns / static_cast<int64_t>(activity.times),
                                  activity.total_ns});
  }
  std::stable_sort(report->activities.begin(), report->activities.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
}

// Of the whole job: from the ranks.
void AddSums(const TraceFacts& facts, const std::vector<Steps>& steps, Report* report) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> medians;
  uint64_t bytes = 0;
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankHistory& rank = facts.ranks[i];
    report->lost_records += rank.lost;
    first = std::min(first, rank.first_ns);
    last = std::max(last, rank.last_ns);
    report->steps = std::max(report->steps, report->ranks[i].step_ns.size());
    report->tensors_per_step = std::max(report->tensors_per_step, steps[i].tensors);
    if (!report->ranks[i].step_ns.empty()) medians.push_back(report->ranks[i].median_step_ns);
    if (steps[i].begins.size() < 2 || bytes > 0) continue;
    for (size_t at = steps[i].begins.front(); at < steps[i].begins.back(); ++at)
      bytes += rank.operations[at].bytes;
    report->bytes_per_step = bytes / (steps[i].begins.size() - 1);
  }
  if (first < last) report->time_ns = last - first;
  report->median_step_ns = Median(medians);
}

}  // namespace

Report MakeReport(const TraceFacts& facts, const std::string& path) {
  Report report;
  report.path = path;
  report.events = facts.events;
  report.not_written = facts.not_written;
  std::vector<Steps> steps;
  TimeRange common{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (const RankHistory& rank : facts.ranks) {
    steps.push_back(FindSteps(rank));
    const Window window = WindowOf(rank, steps.back());
    report.ranks.push_back(ReportOf(rank, steps.back(), window));
    if (rank.operations.empty()) continue;
    common.begin_ns = std::max(common.begin_ns, window.range.begin_ns);
    common.end_ns = std::min(common.end_ns, window.range.end_ns);
  }
  AddSums(facts, steps, &report);
  AddTensors(facts, &report);
  AddSizes(facts, &report);
  AddActivities(facts, &report);
  AddLateness(facts, common, &report);
  report.hosts = CompareHosts(facts);
  report.links = LinksIn(facts, report.hosts);
  report.findings = FindingsOf(report);
  return report;
}

}  // namespace hvd
