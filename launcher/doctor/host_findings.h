// Findings about single hosts. Pure: a report in, findings out.
#ifndef HVD_LAUNCHER_DOCTOR_HOST_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_HOST_FINDINGS_H_

#include <vector>

#include "launcher/doctor/doctor_limits.h"
#include "launcher/doctor/doctor_report.h"
#include "launcher/doctor/finding.h"

namespace hvd {

// In the order in which a person reads about a host: whether it can be reached and examined, its
// Python, its clock, its hardware, its limits, its disks, its network interfaces.
std::vector<Finding> HostFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_HOST_FINDINGS_H_
