// Recordings: what the recorders of ranks have measured, for those who look at the job: the file of
// its timeline, the file with the last events of a job that failed, and live views (hvdrun top,
// hvdrun dump, Prometheus).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_RECORDINGS_H_
#define HVD_LAUNCHER_DRIVER_RECORDINGS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/services/timeline_service.h"
#include "launcher/job/state/job_state.h"
#include "launcher/live/live_service.h"
#include "launcher/output/screen.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// The number of AskRings when the job has failed; others are those of LiveService.
inline constexpr uint32_t kFailureDump = 0;

class Recordings {
 public:
  // All of them outlive this object. `begun`: when the job was.
  Recordings(asio::io_context& io, const DriverOptions& options, const JobState& state,
             TimePoint begun, AgentSet& agents, Screen& screen);
  Recordings(const Recordings&) = delete;

  // Opens the file of the timeline, if the settings name one; its path was checked before.
  void OpenTimeline(TimePoint now);
  // Metrics that cannot be served were refused before the job, but for a port that has been taken
  // since.
  void OpenLive(DriverLog& log);
  // The agents are about to end: if the job has failed, and the settings name a file for that, asks
  // them for the last events of their ranks.
  void BeginFailureDump(TimePoint now);
  // Closes all connections of live views.
  void CloseLive() { live_.Close(); }
  void CloseFiles();

  // Messages of agents. Not ok: a sentence about "its agent", for AgentConnection::Break.
  Status Handle(uint32_t host, const TraceBegun& begun, TimePoint);
  Status Handle(uint32_t host, const TraceRecords& records, TimePoint);
  Status Handle(uint32_t host, const CountsReply& reply, TimePoint);
  Status Handle(uint32_t host, const RingReply& reply, TimePoint);
  Status Handle(uint32_t host, const RingsOver& over, TimePoint);
  Status Handle(uint32_t host, const StacksReply& reply, TimePoint);

 private:
  std::unique_ptr<TimelineService> OpenFile(const std::string& path, uint64_t most_bytes,
                                            uint64_t most_steps, TimePoint now);
  LiveService::Hooks LiveHooks();
  const std::string& NameOf(uint32_t host) const { return state_.plan.hosts[host]; }

  asio::io_context& io_;
  const DriverOptions& options_;
  const JobState& state_;
  const TimePoint begun_;
  AgentSet& agents_;
  Screen& screen_;
  std::unique_ptr<TimelineService> timeline_;      // null: the job has none
  std::unique_ptr<TimelineService> failure_dump_;  // of a job that failed, if it was asked for
  LiveService live_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_RECORDINGS_H_
