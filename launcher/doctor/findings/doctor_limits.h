// DoctorLimits: all thresholds of the doctor.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_DOCTOR_LIMITS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_DOCTOR_LIMITS_H_

#include <cstdint>

#include "runtime/base/clock.h"

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

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_DOCTOR_LIMITS_H_
