// JobHosts: what hvdrun knows about the hosts of its job beyond the plan and the state, by their
// numbers: how they are named and reached, the port that each agent holds, and where rank 0 of
// torch.distributed listens, which depends on them.
//
// A plain table: the connectivity round, the agents' messages and the start of workers fill it in.
#ifndef HVD_LAUNCHER_DRIVER_JOB_HOSTS_H_
#define HVD_LAUNCHER_DRIVER_JOB_HOSTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "discovery/host_slots.h"
#include "launcher/driver/driver_options.h"
#include "launcher/wire/plan.h"

namespace hvd {

struct JobHost {
  std::string target;                  // the name or address by which it was listed
  bool remote = false;                 // not this machine
  std::vector<std::string> addresses;  // where its ranks listen for others; known once probed
  uint32_t free_port = 0;              // for MASTER_PORT, held by its agent
};

class JobHosts {
 public:
  JobHosts() = default;
  // The hosts that the job begins with.
  explicit JobHosts(const DriverOptions& options);

  // The next host.
  void Add(const HostSlots& listing) { hosts_.push_back({listing.host, listing.remote, {}, 0}); }
  uint32_t count() const { return static_cast<uint32_t>(hosts_.size()); }
  JobHost& operator[](uint32_t host) { return hosts_[host]; }
  const JobHost& operator[](uint32_t host) const { return hosts_[host]; }

  // At least one of the hosts known so far is not this machine.
  bool any_remote() const;
  // The ranks of this plan are on different machines, which need the network.
  bool SeveralMachines(const Plan& plan) const;

  const MasterAddress& master() const { return master_; }
  void set_master(MasterAddress master) { master_ = std::move(master); }
  // A clause about another user's server that listens at MASTER_PORT; empty: none was found.
  const std::string& master_port_trouble() const { return master_port_trouble_; }
  void set_master_port_trouble(std::string trouble) { master_port_trouble_ = std::move(trouble); }

 private:
  std::vector<JobHost> hosts_;
  MasterAddress master_;
  std::string master_port_trouble_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_HOSTS_H_
