// What a job is started with: a draft of its plan, the settings and its hosts. A plain value, which
// does not change while the job runs.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_OPTIONS_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/driver/takeover/takeover_record.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/job/policy/job_policy.h"
#include "launcher/output/printed_output.h"
#include "launcher/output/text/prefix.h"
#include "launcher/wire/plan.h"

namespace hvd {

// A host of the plan, beyond its name.
struct DriverHost {
  bool remote = false;                 // not this machine
  std::vector<std::string> addresses;  // where its ranks listen for others; of a job taken over
};

// Where rank 0 listens for scripts of torch.distributed.
struct MasterAddress {
  std::string address;  // empty: this machine
  uint32_t port = 0;    // 0: none
};

struct DriverOptions {
  std::string job_id, job_key;
  Plan plan;  // a draft until the agents are connected; then the job has the final one
  Settings settings;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;
  std::vector<std::string> given_environment;  // "NAME=value", from --env-file and -x
  MasterAddress master;
  std::vector<DriverHost> hosts;       // by host of the plan
  std::vector<HostSlots> named_hosts;  // the same, as the user named them; empty: the plan is final
  std::vector<std::string> interfaces;     // for connections between hosts; empty: all
  uint16_t first_port = 0, last_port = 0;  // both 0: any
  StageLimits stage_limits = StageLimits::Default();
  PrefixTemplate prefix = PrefixTemplate::Default();
  bool stdin_terminal = false;
  std::string function;       // of horovod.run(), that each rank is to run; empty: it is a command
  std::string successor_key;  // secret: of the driver that takes over; empty: none does
  std::shared_ptr<PrintedOutput> printed;    // that both know; null: none does
  int successor_link = -1;                   // to the standby (standby.h); -1: there is none
  double successor_grace_seconds = 0;        // for which agents wait for the next driver
  std::optional<TakeoverRecord> taken_over;  // of the hvdrun that was killed
  JobPolicy policy;  // where it finds hosts, the plan has none before it begins

  // At least one of the hosts known so far is not this machine.
  bool any_remote() const { return std::ranges::any_of(hosts, &DriverHost::remote); }
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_OPTIONS_H_
