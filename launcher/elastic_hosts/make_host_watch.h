// The source of hosts of an elastic job, as its settings say.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_selection.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/script_watch.h"
#include "launcher/process/local_family.h"
#include "runtime/base/status.h"

namespace hvd {

// Which source, and the script or file that it watches. A plain value.
struct HostWatchPlan {
  enum class Source { kScript, kFile, kNames, kAllocation };
  Source source = Source::kNames;
  std::string file;                 // of kFile
  std::vector<HostSpec> specs;      // of kNames, kAllocation
  std::vector<std::string> played;  // names that are this machine (--hosts-per-machine)
};

// The source that --host-discovery-script, --hostfile or -H names; this machine where none is
// named, with a slot for each rank that the job may have and each spare. kInvalidArgument: one
// sentence, before anything starts; a host file is read for it, a script is not run. Sentences for
// the user are appended to `notes`.
Result<HostWatchPlan> PlanHostWatch(const Settings& settings, const SelectionFacts& facts,
                                    std::vector<std::string>& notes);

struct HostWatchProcess {
  std::vector<std::string> environment;          // of the script: "NAME=value"
  std::string directory;                         // where it runs
  std::shared_ptr<LocalFamily> family;           // of all children of this process
  std::function<void(const std::string&)> note;  // a sentence for the log
  // Of kAllocation: reads what settings.allocation_command prints; how long until it is run again.
  ReadHosts read_allocation = {};
  Duration allocation_pause = std::chrono::seconds(15);
};

// Does not start it. `facts` are asked in other threads, too.
std::unique_ptr<HostWatch> MakeHostWatch(asio::io_context& io, const Settings& settings,
                                         const HostWatchPlan& plan, const SelectionFacts& facts,
                                         const HostWatchProcess& process);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_
