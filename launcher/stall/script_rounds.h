// ScriptRounds: collects, in the driver, the agents' observations of ranks that use another
// library's collectives, and returns each verdict once. Pure: the ranks and the times are
// arguments.
#ifndef HVD_LAUNCHER_STALL_SCRIPT_ROUNDS_H_
#define HVD_LAUNCHER_STALL_SCRIPT_ROUNDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/stall/verdict/script_verdict.h"
#include "launcher/wire/messages.h"

namespace hvd {

class ScriptRounds {
 public:
  // `shutdown_ms`: how long a job may hang; 0: no limit.
  ScriptRounds(int64_t warning_ms, int64_t shutdown_ms)
      : warning_ms_(warning_ms), shutdown_ms_(shutdown_ms) {}

  // Stores an agent's observations of the workers of its host.
  void Handle(uint32_t host, const ScriptObserved& observed);
  // `ranks`: of the job, by worker number, without observations. Returns a verdict to report to the
  // user.
  std::optional<ScriptStall> Look(std::map<uint32_t, ScriptRank> ranks);

  // At the last look all ranks had been silent for the warning time, without a verdict.
  bool unexplained() const { return unexplained_; }

 private:
  const int64_t warning_ms_, shutdown_ms_;
  std::map<uint32_t, std::vector<ScriptObservation>> observed_;  // by host
  std::string reported_;                                         // key of the last verdict reported
  bool ended_ = false, unexplained_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_SCRIPT_ROUNDS_H_
