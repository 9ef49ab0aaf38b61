#include "launcher/tuning/tuning_report.h"

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "timeline/page/page.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPage =
#include "page.inc"
    ;
constexpr size_t kSliceSteps = 32, kSurfaceSteps = 20;

// `steps` + 1 values of an axis from end to end, evenly spaced on its scale.
std::vector<double> Sweep(const TuneAxis& axis, size_t steps) {
  std::vector<double> values;
  for (size_t i = 0; i <= steps; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(steps);
    const bool log = axis.kind == TuneAxis::Kind::kLog;
    const double value = log ? axis.low * std::pow(axis.high / axis.low, part)
                             : axis.low + (axis.high - axis.low) * part;
    values.push_back(axis.whole || !log ? std::round(value) : value);
  }
  return values;
}

Json JsonOf(const Tuner::Expectation& expected) {
  return {{"mean", expected.mean}, {"deviation", expected.deviation}};
}

// How speed depends on one axis, with the others as in `point`.
Json Slice(size_t axis, const std::vector<TuneAxis>& axes, const Tuner& tuner, TunePoint point) {
  Json slice = Json::array();
  for (const double value : Sweep(axes[axis], kSliceSteps)) {
    point[axis] = value;
    Json expected = JsonOf(tuner.Expect(point));
    expected["x"] = value;
    slice.push_back(std::move(expected));
  }
  return slice;
}

Json AxesJson(const std::vector<TuneAxis>& axes, const Tuner& tuner, const TunePoint& chosen) {
  Json json = Json::array();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].pinned) continue;
    json.push_back({{"name", axes[i].name},
                    {"flag", FlagOf(axes[i].name)},
                    {"log", axes[i].kind == TuneAxis::Kind::kLog},
                    {"low", axes[i].low},
                    {"high", axes[i].high},
                    {"initial", axes[i].initial},
                    {"chosen", chosen[i]},
                    {"slice", Slice(i, axes, tuner, chosen)}});
  }
  return json;
}

// How speed depends on the first two tuned axes; null if there is only one.
Json Surface(const std::vector<TuneAxis>& axes, const Tuner& tuner, TunePoint point) {
  std::vector<size_t> free;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].pinned) free.push_back(i);
  }
  if (free.size() < 2) return nullptr;
  const std::vector<double> xs = Sweep(axes[free[0]], kSurfaceSteps);
  const std::vector<double> ys = Sweep(axes[free[1]], kSurfaceSteps);
  Json rows = Json::array();
  for (const double y : ys) {
    Json row = Json::array();
    for (const double x : xs) {
      point[free[0]] = x;
      point[free[1]] = y;
      row.push_back(tuner.Expect(point).mean);
    }
    rows.push_back(std::move(row));
  }
  return {{"x", axes[free[0]].name},
          {"y", axes[free[1]].name},
          {"xs", xs},
          {"ys", ys},
          {"speed", std::move(rows)}};
}

Json WindowsJson(const std::vector<TuningRow>& windows, const std::vector<TuneAxis>& axes) {
  Json json = Json::array();
  for (const TuningRow& window : windows) {
    Json values = Json::object();
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].pinned) values[axes[i].name] = window.point[i];
    }
    json.push_back({{"kind", window.kind},
                    {"score", window.score},
                    {"step_ms", window.step_ms},
                    {"values", std::move(values)}});
  }
  return json;
}

}  // namespace

std::string TuningPage(const std::vector<TuningRow>& windows, const std::vector<TuneAxis>& axes,
                       const Tuner& tuner, const TunedWorld& world, const std::string& sentence) {
  const TuningResult result = tuner.result();
  const Json json = {
      {"sentence", sentence},
      {"ranks", world.size},
      {"ranks_of_this_host", world.local_size},
      {"gained", result.gained},
      {"gain", result.gain},
      {"gain_low", result.gain_low},
      {"gain_high", result.gain_high},
      {"noise", result.noise},
      {"points", result.points},
      {"searches", tuner.searches()},
      {"flags", FlagsOf(result.point, axes)},
      {"windows", WindowsJson(windows, axes)},
      {"axes", AxesJson(axes, tuner, result.point)},
      {"surface", Surface(axes, tuner, result.point)},
  };
  return FillPage(kPage, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace hvd
