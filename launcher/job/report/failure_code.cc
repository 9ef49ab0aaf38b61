#include "launcher/job/report/failure_code.h"

#include <optional>

#include "launcher/job/report/job_result.h"

namespace hvd {
namespace {

std::string_view CodeOfRank(const JobState& state) {
  const std::optional<uint32_t> cause = FirstFailedRank(state);
  if (!cause || !state.ranks[*cause].end) return "HVD101";
  const WorkerEnd& end = *state.ranks[*cause].end;
  if (end.out_of_memory) return "HVD103";
  if (end.by_signal) return "HVD102";
  return end.ok() ? "HVD104" : "HVD101";
}

}  // namespace

std::string_view FailureCodeOf(const JobState& state) {
  if (!state.failure) return "";
  switch (state.failure->kind) {
    case JobFailure::Kind::kRank: return CodeOfRank(state);
    case JobFailure::Kind::kCommand: return "HVD105";
    case JobFailure::Kind::kHosts: return "HVD201";
    case JobFailure::Kind::kHost: return "HVD202";
    case JobFailure::Kind::kRoute: return "HVD203";
    case JobFailure::Kind::kLauncher: return "HVD204";
    case JobFailure::Kind::kInterrupt: return "HVD301";
    case JobFailure::Kind::kTimeout: return "HVD302";
    case JobFailure::Kind::kStall: return state.failure->verdict.never_ends ? "HVD402" : "HVD401";
    case JobFailure::Kind::kEnding: return "HVD403";
    case JobFailure::Kind::kInternal: break;
  }
  return "HVD501";
}

std::string CodeLine(const JobState& state) {
  const std::string_view code = FailureCodeOf(state);
  if (code.empty() || state.failure->kind == JobFailure::Kind::kInterrupt) return "";
  return "  hvdrun explain " + std::string(code) + "\n";
}

}  // namespace hvd
