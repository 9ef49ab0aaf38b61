// DriverParts: the parts of a running driver. Driver (driver.h) passes in events, AgentMessages
// handles what agents send, and JobActions carries out what the job decides; all three work on
// these parts.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/connectivity_round.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/remote_cleanup.h"
#include "launcher/driver/services/forwarded_signals.h"
#include "launcher/driver/services/kv_service.h"
#include "launcher/driver/services/rank_troubles.h"
#include "launcher/driver/services/stdin_broadcast.h"
#include "launcher/driver/services/timeline_service.h"
#include "launcher/driver/stock_worlds.h"
#include "launcher/external/mpi/launcher_run.h"
#include "launcher/job/host_records/host_clock.h"
#include "launcher/job/job.h"
#include "launcher/live/live_service.h"
#include "launcher/output/screen.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/overlay/relay/relay_switch.h"
#include "launcher/overlay/tree/tree_router.h"
#include "launcher/stall/flight_rounds.h"
#include "launcher/stall/script_rounds.h"
#include "launcher/stall/stall_rounds.h"
#include "runtime/base/clock.h"

namespace hvd {

// The number of AskRings when the job has failed; others are those of LiveService.
inline constexpr uint32_t kFailureDump = 0;

struct DriverParts {
  // The agents are added by the owner. `the_events` outlives this object.
  DriverParts(DriverOptions the_options, EventQueue& the_events, TimePoint now);
  DriverParts(const DriverParts&) = delete;

  const std::string& NameOf(uint32_t host) const { return options.plan.hosts[host]; }
  // The rank of a worker, for the screen and for files.
  uint32_t RankOf(uint32_t worker) const { return state.ranks[worker].rank; }
  // Makes room for one more host of an elastic job, which the state knows already.
  void AddHost(const HostSlots& listing);
  // Opens a file for the timeline of the job, or for a part of it; null, after a message to the
  // user, if it cannot be written.
  std::unique_ptr<TimelineService> OpenTimelineFile(const std::string& path, uint64_t most_bytes,
                                                    uint64_t most_steps, TimePoint now);
  // True: the job has failed and its last events are to be written to a file, which is now open.
  bool BeginFailureDump(TimePoint now);
  LiveService::Hooks LiveHooks();
  std::vector<uint32_t> HostsAtWork() const;
  // hvdrun got SIGUSR1 or SIGUSR2, which warn.
  void ForwardToRanks(int signal);
  // Messages that are shown to the user while the job continues.
  void HandleWarning(uint32_t host, const SignalForwarded& answer, TimePoint now);
  void HandleWarning(uint32_t host, const MasterPortTaken& taken, TimePoint now);
  void TellUnlessEnding(const std::string& sentence);
  void TellPrintedSoon();

  EventQueue& events;
  bool tick_moved = false;  // NextTick of some part may be earlier now
  // Its plan has the ranks of the present generation, the state's all workers; in a job of fixed
  // size they are equal.
  DriverOptions options;
  const TimePoint begun;
  asio::io_context io{1};
  asio::steady_timer printed_timer{io};
  bool tells_printed = false;
  JobState state;
  AgentSet agents;
  TreeRouter tree;
  ConnectivityRound connectivity;
  KvService kv_service;
  RelaySwitch relay;  // knows hosts by their numbers in the tree
  RankTroubles troubles;
  ForwardedSignals forwarded_signals;
  StallRounds stalls;
  ScriptRounds script_stalls;
  FlightRounds flights;
  ClockSchedule clock_schedule;
  RemoteCleanups cleanups;
  // By host: the port for MASTER_PORT that its agent holds, and the facts that it reported.
  std::vector<uint32_t> free_ports;
  std::vector<AgentFacts> facts;
  // A clause about the other user's server that listens at MASTER_PORT.
  std::optional<std::string> port_taken;
  // Nothing of the job is left, but cleanups may still run.
  bool job_over = false;
  // While ranks read stdin.
  std::optional<StdinBroadcast> stdin_broadcast;
  // Last: their threads post to `io`.
  Screen screen;
  DriverLog log;
  std::unique_ptr<StdinReader> stdin_reader;
  std::unique_ptr<TimelineService> timeline;      // null: the job has none
  std::unique_ptr<TimelineService> failure_dump;  // of a job that failed, if it was asked for
  LiveService live;
  std::unique_ptr<StockWorlds> stock;     // null: the workers use our runtime
  std::unique_ptr<LauncherRun> launcher;  // null: the agents start the ranks
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_
