// The doctor's report for people: hosts, their resources (equal values once), pairs, findings.
// Reads well for two hosts and for many. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_
#define HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_

#include <string>
#include <vector>

#include "launcher/doctor/findings/findings.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// Ends with a line break; the last line says how it stands.
std::string DoctorTable(const DoctorReport& report, const std::vector<Finding>& findings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_DOCTOR_TABLE_H_
