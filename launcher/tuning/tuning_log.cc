#include "launcher/tuning/tuning_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <string>

#include "launcher/tuning/tuned_axes.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"
#include "runtime/trace/recorder.h"

namespace hvd {
namespace {

Status Write(const std::string& path, int flags, std::string_view text) {
  const Result<UniqueFd> file = OpenForOutput(path, flags, 0600);
  if (!file.ok()) return InvalidArgument("--autotune-log-file: " + file.status().message());
  const auto bytes = static_cast<ssize_t>(text.size());
  if (::write(file->get(), text.data(), text.size()) == bytes) return Status::Ok();
  return SystemError("the file '" + path + "' of --autotune-log-file cannot be written", errno);
}

}  // namespace

// The first seven are Horovod's; those that do not exist here are constant. Fusion in MB.
std::string TuningHeader() {
  return "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
         "cycle_time_ms,tensor_fusion_threshold,score,chunk_kib,wait_spins,wait_yields,stripes,"
         "kind,steps,"
         "step_ms,predicted_ms\n";
}

std::string TextOf(const TuningRow& row) {
  return Format("0,0,0,1,0,{:.6g},{:.6g},{:.0f},{:.0f},{:.0f},{:.0f},{},{},{:.4f},{:.4f}\n",
                row.point[kFusionMb], row.score, row.point[kChunkKib], row.point[kWaitSpins],
                row.point[kWaitYields], row.point[kStripes], row.kind, row.steps, row.step_ms,
                row.predicted_ms);
}

Status BeginTuningLog(const std::string& path, std::string_view text) {
  return Write(path, O_TRUNC, text);
}

Status AppendText(const std::string& path, std::string_view text) {
  return Write(path, O_APPEND, text);
}

namespace {

// Ranks number theirs from 1 upwards.
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
