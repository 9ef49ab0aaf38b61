// A job of many hosts without one of them: the state machine of the job, the tree and the messages
// are the real ones, the hosts are scripts, the network is a queue of events, the clock is a
// number. Every message costs whoever sends or receives it a fixed time and a time per byte, and a
// network hop takes a time of its own; so the result is the same on every machine.
#ifndef HVD_TEST_SIM_LAUNCH_SIM_H_
#define HVD_TEST_SIM_LAUNCH_SIM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "launcher/job/job.h"
#include "launcher/overlay/tree/agent_tree.h"
#include "launcher/wire/kv_table.h"

namespace hvd {

struct LaunchSimOptions {
  uint32_t hosts = 0, ranks_per_host = 8, radix = 32;
  Duration per_message = std::chrono::microseconds(20);  // CPU time of either side
  Duration per_entry = std::chrono::microseconds(1);     // of those that a message gathers
  Duration per_kilobyte = std::chrono::microseconds(2);
  Duration hop = std::chrono::microseconds(200);
  Duration gather = std::chrono::milliseconds(1);  // as TreeMember does it
};

// From one moment of the job to another.
struct LaunchSimPhase {
  Duration took{};
  uint64_t driver_messages = 0;   // that the driver sent and received
  uint64_t driver_entries = 0;    // gathered in them
  uint64_t driver_bytes = 0;      // of them
  uint64_t busiest_messages = 0;  // of the agent with most of them
  double mean_messages = 0;       // of an agent
  double mean_bytes = 0;          // of an agent
};

class LaunchSim {
 public:
  explicit LaunchSim(LaunchSimOptions options);
  ~LaunchSim();

  // All agents have said hello and proven addresses; workers start, join, form the first world, and
  // leaders learn where their partners are.
  LaunchSimPhase Start();
  // The same ranks ask for another world.
  LaunchSimPhase NextGeneration();
  // A rank ends with `code` while all are in a world: until every host was told to end its workers.
  LaunchSimPhase Fail(uint32_t rank, int code);

  const JobState& job() const;
  // Hosts in the present generation whose leader knows all its partners.
  uint32_t connected() const;

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace hvd

#endif  // HVD_TEST_SIM_LAUNCH_SIM_H_
