// Finding: one thing that is wrong with hosts or with the network between them, and the advice
// about it.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

enum class Severity : uint8_t {
  kError,    // a run over these hosts does not work
  kWarning,  // it works, and something will hurt
};

struct Finding {
  Severity severity = Severity::kWarning;
  std::string kind;                // one word, for programs: "clock"
  std::vector<std::string> hosts;  // the hosts that it is about, in their order
  std::string what;                // a sentence without the hosts' names
  std::string fix;                 // what to do; empty: `what` says it
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
