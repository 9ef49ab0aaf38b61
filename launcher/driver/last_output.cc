#include "launcher/driver/last_output.h"

#include <optional>

#include "launcher/job/error_file.h"
#include "launcher/job/report/failure_code.h"
#include "launcher/job/report/failure_hint.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"

namespace hvd {
namespace {

// A person at a terminal reads a traceback once.
TracebackPlace PlaceOfTraceback(const JobState& state, const Screen& screen) {
  const std::optional<uint32_t> cause = FirstFailedRank(state);
  if (!cause) return TracebackPlace::kInReport;
  const auto& end = state.ranks[*cause].end;
  return end && screen.Shows(end->last_stderr) ? TracebackPlace::kAbove : TracebackPlace::kInReport;
}

}  // namespace

std::string LastOutput::Text() const {
  const std::string dumps = state_.failure ? hangs_.DumpLines() : "";
  return Report(state_, PlaceOfTraceback(state_, screen_)) + dumps + Hint() + CodeLine(state_);
}

// How the command, or a port that is taken, explains the failure of a rank.
std::string LastOutput::Hint() const {
  if (!state_.failure || state_.failure->kind != JobFailure::Kind::kRank) return "";
  const std::optional<uint32_t> cause = FirstFailedRank(state_);
  if (!cause) return "";
  const auto& end = state_.ranks[*cause].end;
  return FailureHint(options_.command, end ? end->last_stderr : "", hosts_.master_port_trouble());
}

std::string LastOutput::WriteErrorFileIfFailed() const {
  const std::string& path = options_.settings.error_file;
  if (path.empty() || !state_.failure) return "";
  Status status = WriteErrorFile(path, ErrorJson(state_, options_.job_id, options_.command));
  return status.ok() ? "" : "hvdrun: " + status.message() + "\n";
}

}  // namespace hvd
