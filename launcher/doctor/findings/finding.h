// Finding: a problem of hosts or of the network between them, with advice; and the thresholds.
// Plain values.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

enum class Severity : uint8_t {
  kError,    // a job on these hosts will fail
  kWarning,  // a job works, but suffers
};

struct Finding {
  Severity severity = Severity::kWarning;
  std::string kind;                // a keyword for programs: "clock"
  std::vector<std::string> hosts;  // the hosts concerned, in order
  std::string what;                // a sentence without the hosts' names
  std::string fix;                 // what to do; empty: `what` includes it
};

struct DoctorLimits {
  Duration clock = std::chrono::seconds(1);  // beyond the uncertainty of the estimate
  uint64_t memlock = uint64_t{1} << 30;      // bytes, on hosts with GPUs or RDMA
  uint64_t nofile = 4096;
  uint64_t nproc = 4096;
  double disk_free_share = 0.05;           // and also below disk_free
  uint64_t disk_free = uint64_t{5} << 30;  // bytes
  uint64_t shm = uint64_t{64} << 20;       // bytes; Docker's default, which data loaders exceed
  double slow_latency = 5;                 // factor above the median of all pairs, and
  Duration slow_latency_least = std::chrono::milliseconds(1);  // this much above it
  double slow_speed = 4;  // factor below the median of all pairs
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_H_
