// A window of the tuner as records for the timeline of rank 0. Pure.
#ifndef HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_
#define HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "launcher/tuning/tuning_log.h"
#include "timeline/ring.h"

namespace hvd {

// `flags`: the choice, as FlagsOf says it; `now_ns`: the end of the window, by the host's steady
// clock. The name of the choice comes before the record that uses it.
std::vector<TraceRecord> TrialRecords(const TuningRow& row, std::string_view flags, int64_t now_ns);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_
