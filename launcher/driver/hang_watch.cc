#include "launcher/driver/hang_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "launcher/driver/job_outline.h"
#include "launcher/driver/job_settings.h"
#include "launcher/wire/message_rights.h"

namespace hvd {

HangWatch::HangWatch(const Settings& settings, const JobState& state, AgentSet& agents,
                     EventQueue& events)
    : script_warning_ms_(ScriptWarningMs(settings)),
      state_(state),
      agents_(agents),
      events_(events),
      troubles_(RouteSilenceLimit(settings)),
      stalls_(
          [this](uint32_t host, const ExamineRanks& question) { agents_.Send(host, question); }),
      script_stalls_(script_warning_ms_, int64_t{1000} * settings.stall_shutdown_seconds),
      flights_([this](uint32_t host, const AskFlight& question) { agents_.Send(host, question); }) {
}

Status HangWatch::Handle(uint32_t, const StallReport& report, TimePoint now) {
  if (report.generation != state_.generation || state_.asked()) return Status::Ok();
  stalls_.Begin(state_.GenerationPlan(), report, now);
  return Status::Ok();
}

Status HangWatch::Handle(uint32_t host, const RanksExamined& examined, TimePoint now) {
  HVD_RETURN_IF_ERROR(stalls_.Handle(state_.GenerationPlan(), host, examined));
  ReportStall(now);
  return Status::Ok();
}

Status HangWatch::Handle(uint32_t host, const ScriptObserved& observed, TimePoint now) {
  HVD_RETURN_IF_ERROR(CheckWorkers(observed.ranks, host, state_.plan.ranks));
  script_stalls_.Handle(host, observed);
  std::optional<ScriptStall> stall = script_stalls_.Look(ScriptRanksOf(state_));
  if (stall) {
    flights_.Begin(std::move(*stall), HostsAtWork(state_), now);
  } else if (script_stalls_.unexplained()) {
    flights_.Suspect(HostsAtWork(state_), std::chrono::milliseconds(script_warning_ms_), now);
  } else {
    return Status::Ok();
  }
  ReportScriptStall(now);
  return Status::Ok();
}

Status HangWatch::Handle(uint32_t host, const FlightReply& reply, TimePoint now) {
  HVD_RETURN_IF_ERROR(CheckWorkers(reply.records, host, state_.plan.ranks));
  flights_.Handle(host, reply);
  ReportScriptStall(now);
  return Status::Ok();
}

void HangWatch::HandleTrouble(uint32_t host, uint64_t generation, const Trouble& trouble,
                              TimePoint now) {
  const std::optional<JobEvent> event =
      troubles_.Handle(state_.GenerationPlan(), host, generation, trouble, now);
  if (event) events_.Push(*event);
}

void HangWatch::ReportStall(TimePoint now) {
  if (std::optional<StallExplained> stall = stalls_.Result(state_.GenerationPlan(), now))
    events_.Push(*stall);
}

void HangWatch::ReportScriptStall(TimePoint now) {
  if (std::optional<ScriptStall> stall = flights_.Result(state_.size(), now)) events_.Push(*stall);
}

// The agent of the rank's host has sent something lately.
bool HangWatch::HeardFrom(uint32_t rank) const {
  const Placement* place = state_.PlaceOf(rank);
  return place != nullptr && agents_[place->host].heard();
}

void HangWatch::Tick(TimePoint now) {
  if (std::optional<SilentRoute> broken =
          troubles_.PopBroken(now, [this](uint32_t rank) { return HeardFrom(rank); }))
    events_.Push(*broken);
  if (now >= stalls_.NextTick()) ReportStall(now);
  ReportScriptStall(now);
}

TimePoint HangWatch::NextTick(TimePoint now) const {
  return std::min({troubles_.NextTick(now), stalls_.NextTick(), flights_.NextTick()});
}

}  // namespace hvd
