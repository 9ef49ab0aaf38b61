// HangWatch: finds out why the ranks of a job make no progress: ranks that wait for others in a
// collective (StallRounds), scripts that use another library's collectives (ScriptRounds and the
// recorders of PyTorch, FlightRounds), and troubles that ranks report themselves (RankTroubles). It
// asks the agents, and each result is an event of the job.
//
// One thread, that of the io_context; the time is an argument.
#ifndef HVD_LAUNCHER_DRIVER_HANG_WATCH_H_
#define HVD_LAUNCHER_DRIVER_HANG_WATCH_H_

#include <cstdint>
#include <string>

#include "configs/settings.h"
#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/services/rank_troubles.h"
#include "launcher/job/state/job_state.h"
#include "launcher/stall/flight_rounds.h"
#include "launcher/stall/script_rounds.h"
#include "launcher/stall/stall_rounds.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/trouble.h"

namespace hvd {

class HangWatch {
 public:
  // All of them outlive this object.
  HangWatch(const Settings& settings, const JobState& state, AgentSet& agents, EventQueue& events);
  HangWatch(const HangWatch&) = delete;

  // Messages of agents. Not ok: a sentence about "its agent", for AgentConnection::Break.
  Status Handle(uint32_t host, const StallReport& report, TimePoint now);
  Status Handle(uint32_t host, const RanksExamined& examined, TimePoint now);
  Status Handle(uint32_t host, const ScriptObserved& observed, TimePoint now);
  Status Handle(uint32_t host, const FlightReply& reply, TimePoint now);
  // A rank of the host has published a trouble in the directory of its generation.
  void HandleTrouble(uint32_t host, uint64_t generation, const Trouble& trouble, TimePoint now);

  // A worker was started: records of the one before it say nothing any more.
  void ForgetFlights() { flights_.Forget(); }
  // Lines about the dumps that PyTorch itself wrote in failed ranks; empty: none.
  std::string DumpLines() const { return flights_.LinesOfFailure(state_.size()); }

  // Call at NextTick() or later.
  void Tick(TimePoint now);
  TimePoint NextTick(TimePoint now) const;

 private:
  void ReportStall(TimePoint now);
  void ReportScriptStall(TimePoint now);
  bool HeardFrom(uint32_t rank) const;

  const int64_t script_warning_ms_;
  const JobState& state_;
  AgentSet& agents_;
  EventQueue& events_;
  RankTroubles troubles_;
  StallRounds stalls_;
  ScriptRounds script_stalls_;
  FlightRounds flights_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_HANG_WATCH_H_
