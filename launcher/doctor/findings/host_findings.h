// Findings about single hosts. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_

#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// In this order: whether it can be reached and examined, Python, clock, hardware, limits, disks,
// network interfaces.
std::vector<Finding> HostFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
