// Findings: the faults of hosts and of the network between them, with advice about each. Pure: a
// report in, findings out.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_

#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// Those of hosts, then those of pairs (host_findings.h, pair_findings.h); errors first.
std::vector<Finding> FindingsOf(const DoctorReport& report, const DoctorLimits& limits = {});

// 0: all hosts can be used; 1: not all of them.
int DoctorExitCode(const std::vector<Finding>& findings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_
