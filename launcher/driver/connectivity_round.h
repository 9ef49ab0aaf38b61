// ConnectivityRound: the hosts of a job probe each other before anything is started: which host
// probes which others, at which addresses each was reached, and which routes are blocked. A host
// listens for others where they reached it. Pure.
#ifndef HVD_LAUNCHER_DRIVER_CONNECTIVITY_ROUND_H_
#define HVD_LAUNCHER_DRIVER_CONNECTIVITY_ROUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/job/state/job_state.h"
#include "launcher/overlay/tree/tree_router.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"

namespace hvd {

class ConnectivityRound {
 public:
  // Writes the addresses into `hosts`. All arguments outlive this object.
  ConnectivityRound(const DriverOptions& options, const Plan& plan, JobHosts& hosts,
                    TreeRouter& tree)
      : options_(options), plan_(plan), hosts_(hosts), tree_(tree) {}

  // The question to the agent of a host with a rank, once the tree is formed.
  ProbeConnectivity QuestionFor(uint32_t host) const;

  struct Answer {
    HostProven event;
    std::vector<std::string> notes;  // for --verbose
  };
  Answer Handle(uint32_t host, const ConnectivityProbed& probed);

  // The round is over: the master address is that of the first host, an IPv4 one if it has any, and
  // a host that no other one reached (or that has none to reach) listens at the loopback address.
  void Finish(uint32_t master_port);
  // "a at 10.0.0.1, b at 10.0.0.2", of the first hosts.
  std::string AddressesText() const;

 private:
  const std::string& NameOf(uint32_t host) const { return plan_.hosts[host]; }
  // False: the address is known already, or is none.
  bool AddAddress(uint32_t host, const std::string& address);

  const DriverOptions& options_;
  const Plan& plan_;
  JobHosts& hosts_;
  TreeRouter& tree_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_CONNECTIVITY_ROUND_H_
