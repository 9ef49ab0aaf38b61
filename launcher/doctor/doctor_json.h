// The doctor's report as one JSON object. docs/doctor.md has its keys. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_DOCTOR_JSON_H_
#define HVD_LAUNCHER_DOCTOR_DOCTOR_JSON_H_

#include <string>
#include <vector>

#include "launcher/doctor/findings/findings.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// An unknown fact is null or omitted, never guessed. Ends with a line break.
std::string DoctorJson(const DoctorReport& report, const std::vector<Finding>& findings,
                       int exit_code);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_DOCTOR_JSON_H_
