// Findings about the network between two hosts. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// The hosts to blame for bad pairs: those with more than half of their pairs bad, and with more
// than half as many bad pairs as the worst host. Empty if there is only one bad pair, or one pair
// in all. `bad` points into `all`.
std::set<uint32_t> HostsInCommon(const std::vector<PairReport>& all,
                                 const std::vector<const PairReport*>& bad);

// Unreachable, high-latency and slow pairs: as findings of the hosts that they have in common, and
// the remaining pairs individually.
std::vector<Finding> PairFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_
