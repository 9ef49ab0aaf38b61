// Findings: problems of hosts and of the network between them, with advice. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_

#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// Those of hosts, then those of pairs (host_findings.h, pair_findings.h); errors first.
std::vector<Finding> FindingsOf(const DoctorReport& report, const DoctorLimits& limits = {});

// 0: all hosts are usable; 1: not all.
int DoctorExitCode(const std::vector<Finding>& findings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDINGS_H_
