// A window of the tuner as records for the timeline of rank 0. Pure.
#ifndef HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_
#define HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "launcher/tuning/tuning_log.h"
#include "runtime/trace/ring.h"

namespace hvd {

// `flags`: the choice, from FlagsOf; `now_ns`: end of the window on the host's steady clock. The
// record of its name precedes the record that uses it.
std::vector<TraceRecord> TrialRecords(const TuningRow& row, std::string_view flags, int64_t now_ns);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TRIAL_RECORDS_H_
