#include "launcher/tuning/tuned_axes.h"

#include <array>
#include <charconv>
#include <cmath>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

struct AxisFacts {
  std::string_view name, variable, flag;
  double low, high, initial;
};

// As the runtime chooses them without tuning: chunking.h, wait_policy.h, coordinator.h and
// large_sum.cc.
constexpr std::array<AxisFacts, kTunedAxes> kFacts{{
    {"chunk_kib", "HVD_CHUNK_KIB", "--chunk-kib", 16, 2048, 128},
    {"wait_spins", "HVD_WAIT_SPINS", "--wait-spins", 1, 20'000, 400},
    {"wait_yields", "HVD_WAIT_YIELDS", "--wait-yields", 1, 2000, 50},
    {"tensor_fusion_threshold", "HOROVOD_FUSION_THRESHOLD", "--fusion-threshold-mb", 1, 256, 128},
    {"stripes", "HVD_INTER_HOST_STRIPES", "--inter-host-stripes", 1, 8, 1},
}};

bool HasEffect(size_t axis, const TunedWorld& world) {
  const bool one_host = world.local_size == world.size;
  if (world.size < 2) return false;
  switch (axis) {
    case kChunkKib: return one_host;
    case kWaitSpins: return one_host && world.local_size <= world.cores;
    case kWaitYields: return one_host && world.local_size > world.cores;
    default: return !one_host;
  }
}

double UserValue(size_t axis, std::string_view text) {
  double value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return axis == kFusionMb ? value / (1 << 20) : value;
}

}  // namespace

std::string_view ValueOf(std::string_view name, std::span<const std::string> variables) {
  for (const std::string& entry : variables) {
    const std::string_view text = entry;
    if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=')
      return text.substr(name.size() + 1);
  }
  return "";
}

std::vector<TuneAxis> TunedAxes(const TunedWorld& world, std::span<const std::string> variables) {
  std::vector<TuneAxis> axes;
  for (size_t i = 0; i < kTunedAxes; ++i) {
    const AxisFacts& facts = kFacts[i];
    TuneAxis axis{.name = std::string(facts.name),
                  .low = facts.low,
                  .high = facts.high,
                  .initial = facts.initial,
                  .whole = true,
                  .pinned = !HasEffect(i, world)};
    if (const std::string_view given = ValueOf(facts.variable, variables); !given.empty()) {
      axis.initial = UserValue(i, given);
      axis.pinned = true;
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

void Apply(const TunePoint& point, const std::vector<TuneAxis>& axes, TunedSettings* settings) {
  const auto store = [&](size_t axis, auto* setting, double value) {
    using Number = decltype(setting->load());
    if (!axes[axis].pinned) setting->store(static_cast<Number>(value), std::memory_order_relaxed);
  };
  store(kChunkKib, &settings->chunk_kib, point[kChunkKib]);
  store(kWaitSpins, &settings->spins, point[kWaitSpins] + 1);
  store(kWaitYields, &settings->yields, point[kWaitYields] + 1);
  store(kFusionMb, &settings->fusion, point[kFusionMb] * (1 << 20) + 1);
  store(kStripes, &settings->stripes, point[kStripes] + 1);
}

std::string_view FlagOf(std::string_view axis) {
  for (const AxisFacts& facts : kFacts) {
    if (facts.name == axis) return facts.flag;
  }
  return "";
}

std::string GivenFlags(std::span<const std::string> variables) {
  std::map<std::string, double> values;
  for (size_t i = 0; i < kTunedAxes; ++i) {
    const std::string_view given = ValueOf(kFacts[i].variable, variables);
    if (!given.empty()) values[std::string(kFacts[i].name)] = UserValue(i, given);
  }
  return FlagsOf(values);
}

std::string FlagsOf(const std::map<std::string, double>& values) {
  std::string text;
  for (const auto& [axis, value] : values) {
    const std::string_view flag = FlagOf(axis);
    if (flag.empty()) continue;
    text += text.empty() ? "" : " ";
    text += Format("{} {}", flag, std::lround(value));
  }
  return text;
}

std::string FlagsOf(const TunePoint& point, const std::vector<TuneAxis>& axes) {
  return FlagsOf(ValuesOf(point, axes));
}

std::map<std::string, double> ValuesOf(const TunePoint& point, const std::vector<TuneAxis>& axes) {
  std::map<std::string, double> values;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].pinned) values[axes[i].name] = point[i];
  }
  return values;
}

}  // namespace hvd
