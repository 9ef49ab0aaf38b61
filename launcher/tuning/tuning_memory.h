// Results of earlier searches, one file each in a folder of the user; a run of the same model on
// the same kind of hosts starts from them.
#ifndef HVD_LAUNCHER_TUNING_TUNING_MEMORY_H_
#define HVD_LAUNCHER_TUNING_TUNING_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/tuner.h"
#include "launcher/tuning/tuned_axes.h"
#include "runtime/base/status.h"

namespace hvd {

// The conditions under which a result is valid.
struct TuningCase {
  TunedWorld world;
  std::string processor;  // the model of the CPU
  std::string given;      // flags of the settings that the user fixed
  std::string version;    // of hvdrun
  uint64_t model = 0;     // StepMeter::signature
  std::string links;      // LinkKind of the host of rank 0; empty on one host
  bool operator==(const TuningCase&) const = default;
};

struct RememberedTuning {
  TuningCase of;
  std::map<std::string, double> values;  // of the tuned axes, by name
  // As in TuningResult; `gained` false: the defaults are best.
  bool gained = false;
  double gain = 0, gain_low = 0, gain_high = 0;
  size_t windows = 0;
  int64_t found_at = 0;  // seconds since 1970
};

// 12 hexadecimal digits, equal for equal cases.
std::string IdOf(const TuningCase& of);

// `point` with the remembered value of each axis that is not pinned.
TunePoint PointOf(const RememberedTuning& remembered, const std::vector<TuneAxis>& axes);

// $XDG_CACHE_HOME/hvdrun/tuning, or $HOME/.cache/hvdrun/tuning; empty if neither is set.
std::string TuningFolder(
    const std::function<std::optional<std::string>(const char* name)>& variable);

class TuningMemory {
 public:
  // With an empty folder nothing is stored.
  explicit TuningMemory(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Nothing if there is no result; an error if the file is damaged or unreadable.
  Result<std::optional<RememberedTuning>> Find(const TuningCase& of) const;
  // Replaces an earlier result of the case. Atomic if several jobs do so at once.
  Status Keep(const RememberedTuning& found) const;

  struct Listed {
    std::map<std::string, RememberedTuning> results;  // by id
    std::vector<std::string> damaged;                 // sentences
  };
  Listed All() const;
  Status Forget(const std::string& id) const;

 private:
  std::string PathOf(const std::string& id) const { return folder_ + "/" + id + ".json"; }

  std::string folder_;
};

// The CPU model from /proc/cpuinfo, or "unknown".
std::string ProcessorModel();

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNING_MEMORY_H_
