#include <algorithm>
#include <nlohmann/json.hpp>

#include "timeline/report/report_output.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

double Milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

// Of many steps, the slowest of each group.
Json StepsJson(const RankReport& rank, size_t most) {
  const size_t count = rank.step_ns.size();
  const size_t group = std::max<size_t>(1, (count + most - 1) / std::max<size_t>(1, most));
  Json steps = Json::array();
  for (size_t first = 0; first < count; first += group) {
    const auto begin = rank.step_ns.begin() + static_cast<int64_t>(first);
    const auto end = rank.step_ns.begin() + static_cast<int64_t>(std::min(count, first + group));
    const size_t slowest = static_cast<size_t>(std::max_element(begin, end) - rank.step_ns.begin());
    steps.push_back({{"step", slowest},
                     {"begin_ms", Milliseconds(rank.step_begin_ns[slowest])},
                     {"ms", Milliseconds(rank.step_ns[slowest])},
                     {"hidden_share", rank.step_hidden_share[slowest]}});
  }
  return steps;
}

Json RankJson(const RankReport& rank, size_t most_steps) {
  return {{"rank", rank.number},
          {"label", rank.label},
          {"host", rank.host},
          {"steps", rank.step_ns.size()},
          {"step_median_ms", Milliseconds(rank.median_step_ns)},
          {"step_90_percent_ms", Milliseconds(rank.slow_step_ns)},
          {"time_ms", Milliseconds(rank.time_ns)},
          {"wait_share", rank.wait_share},
          {"communication_share", rank.communication_share},
          {"hidden_share_of_communication", rank.hidden_share},
          {"negotiation_share", rank.negotiation_share},
          {"last_share_of_tensors", rank.last_share},
          {"lost_by_others_ms", Milliseconds(rank.lost_by_others_ns)},
          {"lost_records", rank.lost_records},
          {"slowest_steps", StepsJson(rank, most_steps)}};
}

Json TensorJson(const TensorReport& tensor) {
  Json late = Json::array();
  for (int64_t ns : tensor.late_ns) late.push_back(Milliseconds(ns));
  return {{"name", tensor.name},
          {"operations", tensor.operations},
          {"bytes", tensor.bytes},
          {"first_place", tensor.first_place},
          {"in_flight_mean_ms", Milliseconds(tensor.in_flight_ns)},
          {"in_flight_total_ms", Milliseconds(tensor.total_ns)},
          {"late_by_rank_ms", late}};
}

Json SizeJson(const SizeReport& size) {
  return {{"least_bytes", size.least_bytes},
          {"below_bytes", size.most_bytes},
          {"operations", size.operations},
          {"bytes", size.bytes},
          {"median_ms", Milliseconds(size.median_ns)},
          {"bytes_per_second", size.bytes_per_second}};
}

Json ActivityJson(const ActivityReport& activity) {
  return {{"name", activity.name},
          {"times", activity.times},
          {"bytes", activity.bytes},
          {"mean_ms", Milliseconds(activity.mean_ns)},
          {"total_ms", Milliseconds(activity.total_ns)}};
}

Json HostJson(const HostSpeed& host) {
  return {{"host", host.name},
          {"ranks", host.ranks},
          {"results_later_by_ms", Milliseconds(host.behind_ns)},
          {"bytes_per_second", host.bytes_per_second}};
}

Json LinkJson(const Report& report, const LinkReport& link) {
  return {{"from", report.hosts[link.from].name},
          {"to", report.hosts[link.to].name},
          {"bytes", link.bytes},
          {"bytes_per_second", link.bytes_per_second}};
}

Json LinksJson(const Report& report) {
  Json links = Json::array();
  for (const LinkReport& link : report.links) links.push_back(LinkJson(report, link));
  return links;
}

Json StragglerJson(const Report& report) {
  if (!report.straggler) return nullptr;
  const StragglerReport& straggler = *report.straggler;
  return {{"rank", report.ranks[straggler.rank].number},
          {"label", report.ranks[straggler.rank].label},
          {"host", report.ranks[straggler.rank].host},
          {"last_share_of_tensors", straggler.last_share},
          {"time_share_of_others", straggler.time_share},
          {"lost_per_step_ms", Milliseconds(straggler.lost_per_step_ns)},
          {"tensor", straggler.tensor},
          {"tensor_share_of_delay", straggler.tensor_share},
          {"tensors", straggler.tensors}};
}

template <typename List, typename AsJson>
Json ListOf(const List& list, const AsJson& as_json) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(as_json(item));
  return json;
}

}  // namespace

std::string ReportJson(const Report& report, int indent, size_t most_steps) {
  const Json json = {
      {"version", kVersion},
      {"file", report.path},
      {"events", report.events},
      {"lost_records", report.lost_records},
      {"not_written_events", report.not_written},
      {"time_ms", Milliseconds(report.time_ns)},
      {"steps", report.steps},
      {"step_median_ms", Milliseconds(report.median_step_ns)},
      {"tensors_per_step", report.tensors_per_step},
      {"bytes_per_step", report.bytes_per_step},
      {"findings", ListOf(report.findings,
                          [](const JobLimit& finding) -> Json {
                            return {{"time_share", finding.share}, {"sentence", finding.sentence}};
                          })},
      {"straggler", StragglerJson(report)},
      {"ranks",
       ListOf(report.ranks, [&](const RankReport& rank) { return RankJson(rank, most_steps); })},
      {"tensors", ListOf(report.tensors, TensorJson)},
      {"tensors_in_all", report.tensors_in_all},
      {"sizes", ListOf(report.sizes, SizeJson)},
      {"activities", ListOf(report.activities, ActivityJson)},
      {"hosts", ListOf(report.hosts, HostJson)},
      {"links", LinksJson(report)}};
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hvd
