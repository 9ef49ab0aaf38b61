// The settings of the runtime that are tuned in a job, and how a choice is passed to its ranks.
// Pure, except for the shared memory that Apply writes.
#ifndef HVD_LAUNCHER_TUNING_TUNED_AXES_H_
#define HVD_LAUNCHER_TUNING_TUNED_AXES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/search_space.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

// The job as the host of rank 0 sees it.
struct TunedWorld {
  uint32_t size = 0, local_size = 0;
  uint32_t cores = 0;  // shared by the ranks of this host
  bool operator==(const TunedWorld&) const = default;
};

// The order of the values of a point.
enum TunedAxis : size_t { kChunkKib, kWaitSpins, kWaitYields, kFusionMb, kStripes, kTunedAxes };

// All axes; those without effect in this world, and those set by the user (`variables`:
// "NAME=value"), are pinned.
std::vector<TuneAxis> TunedAxes(const TunedWorld& world, std::span<const std::string> variables);

// Leaves settings of pinned axes unchanged.
void Apply(const TunePoint& point, const std::vector<TuneAxis>& axes, TunedSettings* settings);

// "--chunk-kib 256 --wait-spins 1200": the axes that were chosen.
std::string FlagsOf(const TunePoint& point, const std::vector<TuneAxis>& axes);
std::string FlagsOf(const std::map<std::string, double>& values);
// The values of the axes that are not pinned, by name.
std::map<std::string, double> ValuesOf(const TunePoint& point, const std::vector<TuneAxis>& axes);

// "--chunk-kib" for "chunk_kib"; "" for an unknown name.
std::string_view FlagOf(std::string_view axis);

// "--chunk-kib 64 --wait-spins 100": the tunable settings that the user set.
std::string GivenFlags(std::span<const std::string> variables);

// The value of "NAME=value", or "".
std::string_view ValueOf(std::string_view name, std::span<const std::string> variables);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNED_AXES_H_
