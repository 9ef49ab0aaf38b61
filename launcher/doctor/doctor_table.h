// The doctor's report as text: hosts, their resources (equal values merged), pairs, findings. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_
#define HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_

#include <string>
#include <vector>

#include "launcher/doctor/findings/findings.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// Ends with a line break; the last line is the summary.
std::string DoctorTable(const DoctorReport& report, const std::vector<Finding>& findings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_
