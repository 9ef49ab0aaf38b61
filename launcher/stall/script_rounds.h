// ScriptRounds: gathers, for the driver, what agents observe of ranks that use collectives of
// another library, and says each verdict once. Pure: the ranks and the times are arguments.
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
  // `shutdown_ms`: for so long a job may hang; 0: for ever.
  ScriptRounds(int64_t warning_ms, int64_t shutdown_ms)
      : warning_ms_(warning_ms), shutdown_ms_(shutdown_ms) {}

  // What an agent observes of the workers of its host.
  void Take(uint32_t host, const ScriptObserved& observed);
  // `ranks`: of the job, by the numbers of their workers and without what was observed. Something:
  // the user is to hear it.
  std::optional<ScriptStall> Look(std::map<uint32_t, ScriptRank> ranks);

  // At the last look all ranks had shown nothing for the warning time, and there was no verdict.
  bool unexplained() const { return unexplained_; }

 private:
  const int64_t warning_ms_, shutdown_ms_;
  std::map<uint32_t, std::vector<ScriptObservation>> observed_;  // by host
  std::string said_;                                             // the key of the last verdict
  bool ended_ = false, unexplained_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_SCRIPT_ROUNDS_H_
