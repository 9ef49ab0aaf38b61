// TuningLog: the file of --autotune-log-file, with the columns of Horovod and more. Pure text;
// the file is written by AppendText.
#ifndef HVD_LAUNCHER_TUNING_TUNING_LOG_H_
#define HVD_LAUNCHER_TUNING_TUNING_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/tuner.h"
#include "runtime/base/status.h"
#include "runtime/trace/ring.h"

namespace hvd {

// One window.
struct TuningRow {
  TunePoint point;
  std::string_view kind;
  double score = 0;  // bytes per microsecond
  size_t steps = 0;
  double step_ms = 0;       // mean of its steps
  double predicted_ms = 0;  // of a step; 0: no prediction
};

std::string TuningHeader();
std::string TextOf(const TuningRow& row);

// Creates the file for this user only and writes the text. Not ok: one sentence.
Status BeginTuningLog(const std::string& path, std::string_view text);
Status AppendText(const std::string& path, std::string_view text);

// The window as records for the timeline of rank 0. `flags`: the choice, from FlagsOf; `now_ns`:
// end of the window on the host's steady clock. The record of its name precedes the record that
// uses it. Pure.
std::vector<TraceRecord> TrialRecords(const TuningRow& row, std::string_view flags, int64_t now_ns);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNING_LOG_H_
