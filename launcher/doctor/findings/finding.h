// Finding: one thing that is wrong with hosts or with the network between them, and the advice
// about it; and the thresholds from which on something is wrong. Plain values.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

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

struct DoctorLimits {
  Duration clock = std::chrono::seconds(1);  // beyond the uncertainty of the estimate
  uint64_t memlock = uint64_t{1} << 30;      // bytes, where GPUs or RDMA are
  uint64_t nofile = 4096;
  uint64_t nproc = 4096;
  double disk_free_share = 0.05;           // and, at the same time,
  uint64_t disk_free = uint64_t{5} << 30;  // bytes
  uint64_t shm = uint64_t{64} << 20;       // bytes; Docker's default, that data loaders exceed
  double slow_latency = 5;                 // times the median of all pairs, and
  Duration slow_latency_least = std::chrono::milliseconds(1);  // so much more than it
  double slow_speed = 4;  // times less than the median of all pairs
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
