// Findings about single hosts. Pure: a report in, findings out.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_

#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// In the order in which a person reads about a host: whether it can be reached and examined, its
// Python, its clock, its hardware, its limits, its disks, its network interfaces.
std::vector<Finding> HostFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
