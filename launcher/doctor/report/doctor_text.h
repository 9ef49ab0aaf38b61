// Formats numbers for the doctor. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_TEXT_H_
#define HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_TEXT_H_

#include <cstdint>
#include <string>

#include "runtime/base/clock.h"

namespace hvd {

std::string BytesText(uint64_t bytes);          // "1.5 GiB", "unlimited"
std::string CountText(uint64_t count);          // "4096", "unlimited"
std::string SpeedText(double bytes_a_second);   // "1.2 GB/s"
std::string TimeText(Duration duration);        // "85 us", "1.5 ms", "2.5 s"
std::string SignedTimeText(Duration duration);  // "+85 us"

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_TEXT_H_
