// Findings: what is wrong with hosts and the ways between them, and what to do about each. Pure: a
// report in, findings out. All thresholds of the doctor are here.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/doctor/doctor_report.h"

namespace hvd {

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

enum class Severity : uint8_t {
  kError,    // a run over these hosts does not work
  kWarning,  // it works, and something will hurt
};

struct Finding {
  Severity severity = Severity::kWarning;
  std::string kind;                // one word, for programs: "clock"
  std::vector<std::string> hosts;  // whom it is about, in the order of the hosts
  std::string what;                // a sentence without the hosts' names
  std::string fix;                 // what to do; empty: `what` says it
};

// Errors first.
std::vector<Finding> FindingsOf(const DoctorReport& report, const DoctorLimits& limits = {});

// 0: all hosts can be used; 1: not all of them.
int DoctorExitCode(const std::vector<Finding>& findings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_H_
