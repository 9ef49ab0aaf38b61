// DriverParts: the parts of a running driver. Driver (driver.h) brings in what happens,
// AgentMessages what agents send, and JobActions carries out what the job decides; all three work
// on these parts.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/driver/agent_set.h"
#include "launcher/driver/connectivity_round.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/kv_service.h"
#include "launcher/driver/rank_troubles.h"
#include "launcher/driver/remote_cleanup.h"
#include "launcher/driver/stall_rounds.h"
#include "launcher/driver/stdin_broadcast.h"
#include "launcher/driver/timeline_service.h"
#include "launcher/job/host_clock.h"
#include "launcher/job/job.h"
#include "launcher/output/screen.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/relay/relay_switch.h"
#include "launcher/tree/tree_router.h"
#include "runtime/base/clock.h"

namespace hvd {

struct DriverParts {
  // The agents are added by the owner.
  DriverParts(DriverOptions the_options, TimePoint now);
  DriverParts(const DriverParts&) = delete;

  const std::string& NameOf(uint32_t host) const { return options.plan.hosts[host]; }
  // The rank of a worker, for the screen and for files.
  uint32_t RankOf(uint32_t worker) const { return state.ranks[worker].rank; }
  bool elastic() const { return options.elastic.elastic; }
  // Makes room for one more host of an elastic job, which the state knows already.
  void AddHost(const HostSlots& listing);

  // Set by the owner: an event for the job, and that NextTick of some part may be earlier now.
  std::function<void(const JobEvent&)> dispatch;
  std::function<void()> reschedule;
  // The same: makes the connection of the next host.
  std::function<void(uint32_t host)> add_agent;

  // Its plan has the ranks of the present generation, the state's all workers; in a job of fixed
  // size they are equal.
  DriverOptions options;
  const TimePoint begun;
  asio::io_context io{1};
  JobState state;
  AgentSet agents;
  TreeRouter tree;
  ConnectivityRound connectivity;
  KvService kv_service;
  RelaySwitch relay;  // knows hosts by their numbers in the tree
  RankTroubles troubles;
  StallRounds stalls;
  ClockQuestions clock_questions;
  RemoteCleanups cleanups;
  // By host: the port for MASTER_PORT that its agent holds, and what it reported.
  std::vector<uint32_t> free_ports;
  std::vector<AgentFacts> facts;
  // Nothing of the job is left, but cleanups may still run.
  bool job_over = false;
  // While ranks read stdin.
  std::optional<StdinBroadcast> stdin_broadcast;
  // Last: their threads post to `io`.
  Screen screen;
  DriverLog log;
  std::unique_ptr<StdinReader> stdin_reader;
  std::unique_ptr<TimelineService> timeline;  // null: the job has none
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_PARTS_H_
