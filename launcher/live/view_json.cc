#include "launcher/live/view_json.h"

#include <nlohmann/json.hpp>

#include "launcher/output/text/json_field.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

Json RankJson(const RankView& rank) {
  Json json = {{"rank", rank.rank},
               {"worker", rank.worker},
               {"host", rank.host},
               {"pid", rank.pid},
               {"state", rank.state},
               {"operations", rank.operations},
               {"bytes", rank.bytes},
               {"steps", rank.steps},
               {"commits", rank.commits},
               {"last_arrivals", rank.last},
               {"waited_seconds", rank.waited_seconds},
               {"last_collective", nullptr},
               {"rates", nullptr}};
  if (!rank.last_submitted.empty())
    json["last_collective"] = {{"type", rank.collective}, {"name", rank.last_submitted}};
  if (rank.rates) {
    json["rates"] = {{"operations_per_second", rank.rates->operations},
                     {"bytes_per_second", rank.rates->bytes},
                     {"steps_per_second", rank.rates->steps},
                     {"waiting_share", rank.rates->waiting},
                     {"last_share", rank.rates->last}};
  }
  return json;
}

RankView RankOf(const Json& json) {
  RankView rank;
  ReadField(json, "rank", rank.rank);
  ReadField(json, "worker", rank.worker);
  ReadField(json, "host", rank.host);
  ReadField(json, "pid", rank.pid);
  ReadField(json, "state", rank.state);
  ReadField(json, "operations", rank.operations);
  ReadField(json, "bytes", rank.bytes);
  ReadField(json, "steps", rank.steps);
  ReadField(json, "commits", rank.commits);
  ReadField(json, "last_arrivals", rank.last);
  ReadField(json, "waited_seconds", rank.waited_seconds);
  if (const Json& last = json.at("last_collective"); !last.is_null()) {
    ReadField(last, "type", rank.collective);
    ReadField(last, "name", rank.last_submitted);
  }
  if (const Json& rates = json.at("rates"); !rates.is_null()) {
    rank.rates.emplace();
    ReadField(rates, "operations_per_second", rank.rates->operations);
    ReadField(rates, "bytes_per_second", rank.rates->bytes);
    ReadField(rates, "steps_per_second", rank.rates->steps);
    ReadField(rates, "waiting_share", rank.rates->waiting);
    ReadField(rates, "last_share", rank.rates->last);
  }
  return rank;
}

JobView ViewOf(const Json& json) {
  JobView view;
  ReadField(json, "job", view.job);
  ReadField(json, "time", view.time);
  ReadField(json, "generation", view.generation);
  ReadField(json, "size", view.size);
  if (const Json& straggler = json.at("straggler"); !straggler.is_null()) {
    view.straggler.emplace();
    ReadField(straggler, "rank", view.straggler->rank);
    ReadField(straggler, "waiting_share", view.straggler->waits);
    ReadField(straggler, "waiting_share_of_others", view.straggler->others_wait);
  }
  for (const Json& rank : json.at("ranks")) view.ranks.push_back(RankOf(rank));
  return view;
}

RingHead HeadOf(const Json& json) {
  RingHead head;
  head.end = json.value("end", false);
  head.trouble = json.value("trouble", std::string());
  if (head.end) return head;
  ReadField(json, "rank", head.rank);
  ReadField(json, "host", head.host);
  ReadField(json, "generation", head.generation);
  ReadField(json, "offset_ns", head.offset_ns);
  ReadField(json, "uncertainty_ns", head.uncertainty_ns);
  ReadField(json, "bytes", head.bytes);
  return head;
}

// Text from other programs may not be valid UTF-8.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Value>
Result<Value> Parse(std::string_view line, Value (*value_of)(const Json&)) {
  try {
    return value_of(Json::parse(line));
  } catch (const nlohmann::json::exception& failure) {
    return InvalidArgument(std::string("hvdrun answered with something else: ") + failure.what());
  }
}

}  // namespace

std::string ViewJson(const JobView& view) {
  Json json = {{"job", view.job},   {"time", view.time},    {"generation", view.generation},
               {"size", view.size}, {"straggler", nullptr}, {"ranks", Json::array()}};
  if (view.straggler) {
    json["straggler"] = {{"rank", view.straggler->rank},
                         {"waiting_share", view.straggler->waits},
                         {"waiting_share_of_others", view.straggler->others_wait}};
  }
  for (const RankView& rank : view.ranks) json["ranks"].push_back(RankJson(rank));
  return Line(json);
}

Result<JobView> ParseViewJson(std::string_view line) { return Parse(line, ViewOf); }

std::string RingHeadJson(const RingHead& head) {
  if (head.end) return Line({{"end", true}, {"trouble", head.trouble}});
  return Line({{"rank", head.rank},
               {"host", head.host},
               {"generation", head.generation},
               {"offset_ns", head.offset_ns},
               {"uncertainty_ns", head.uncertainty_ns},
               {"bytes", head.bytes},
               {"trouble", head.trouble}});
}

Result<RingHead> ParseRingHead(std::string_view line) { return Parse(line, HeadOf); }

}  // namespace hvd
