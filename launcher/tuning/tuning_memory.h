// The results of earlier searches, one file each in a folder of the user: a run of the same model
// on the same kind of hosts starts there.
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

// The circumstances for which a result holds.
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
  std::map<std::string, double> values;  // of the axes that were chosen, by name
  // As in TuningResult; `gained` false: the defaults are best.
  bool gained = false;
  double gain = 0, gain_low = 0, gain_high = 0;
  size_t windows = 0;
  int64_t found_at = 0;  // seconds since 1970
};

// 12 hexadecimal digits, the same for equal cases.
std::string IdOf(const TuningCase& of);

// `point` with the remembered value of each axis that is not pinned.
TunePoint PointOf(const RememberedTuning& remembered, const std::vector<TuneAxis>& axes);

// $XDG_CACHE_HOME/hvdrun/tuning, or $HOME/.cache/hvdrun/tuning; empty where neither is set.
std::string TuningFolder(
    const std::function<std::optional<std::string>(const char* name)>& variable);

class TuningMemory {
 public:
  // An empty folder remembers nothing.
  explicit TuningMemory(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Nothing where nothing is remembered; an error where the file is damaged or cannot be read.
  Result<std::optional<RememberedTuning>> Find(const TuningCase& of) const;
  // Replaces an earlier result of the case. Jobs may do so at once: one of the results stays whole.
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

// The model of this machine's CPU as /proc/cpuinfo has it; "unknown" where it has none.
std::string ProcessorModel();

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNING_MEMORY_H_
