#include "launcher/tuning/trial_records.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/trace/recorder.h"

namespace hvd {
namespace {

// Ranks count theirs from 1 upwards.
constexpr uint32_t kTrialId = std::numeric_limits<uint32_t>::max();

uint32_t Microseconds(double ms) {
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp(std::round(ms * 1e3), 0.0, kMost));
}

}  // namespace

std::vector<TraceRecord> TrialRecords(const TuningRow& row, std::string_view flags,
                                      int64_t now_ns) {
  std::vector<TraceRecord> records;
  const std::string text = std::string(flags) + '\0' + std::string(row.kind) + '\0';
  ForEachNameRecord(kTrialId, text,
                    [&records](const TraceRecord& piece) { records.push_back(piece); });
  TraceRecord trial;
  trial.stamp = static_cast<uint64_t>(now_ns);
  trial.kind = TraceKind::kTrial;
  trial.id = kTrialId;
  trial.bytes = static_cast<uint64_t>(std::clamp(row.score * 1e6, 0.0, 1e18));
  trial.rank = static_cast<uint32_t>(row.steps);
  trial.status = Microseconds(row.step_ms);
  records.push_back(trial);
  return records;
}

}  // namespace hvd
