// Findings about the network between two hosts. Pure: a report in, findings out.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// The hosts to blame for bad pairs: those in more than half of their own pairs, and in more than
// half as many as the worst. Empty when there is one bad pair only, or one pair at all. `bad`
// points into `all`.
std::set<uint32_t> HostsInCommon(const std::vector<PairReport>& all,
                                 const std::vector<const PairReport*>& bad);

// Pairs that do not reach each other, are late or slow: as findings of the hosts that they have in
// common, and the other pairs each by itself.
std::vector<Finding> PairFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_PAIR_FINDINGS_H_
