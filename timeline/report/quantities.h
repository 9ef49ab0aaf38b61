// Formats quantities: "18.2 ms", "43 %", "25.6 MB". Pure.
#ifndef HVD_TIMELINE_REPORT_QUANTITIES_H_
#define HVD_TIMELINE_REPORT_QUANTITIES_H_

#include <cstdint>
#include <string>

namespace hvd {

std::string TimeText(int64_t ns);         // three digits: "950 ns", "4.21 us", "18.2 ms", "12.3 s"
std::string ShareText(double share);      // "43 %", "0.4 %"
std::string BytesText(double bytes);      // "512 B", "25.6 MB"
std::string RateText(double per_second);  // "1.21 GB/s"; "-" for 0
std::string CountText(uint64_t count, const char* one, const char* many);  // "1 rank", "4 ranks"

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_QUANTITIES_H_
