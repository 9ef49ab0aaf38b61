// Chooses and creates the host source of an elastic job from its settings.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_selection.h"
#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/elastic_hosts/script_watch.h"
#include "launcher/process/local_family.h"
#include "runtime/base/status.h"

namespace hvd {

// FixedWatch: the hosts of -H, or this machine; answers once.
class FixedWatch final : public HostWatch {
 public:
  FixedWatch(asio::io_context& io, std::vector<HostSpec> specs, const WatchParts& parts)
      : named_(io, parts), specs_(std::move(specs)) {}
  ~FixedWatch() override { Stop(); }

  void Start(std::function<void(const HostAnswer&)> on_answer) override;
  void Stop() override { named_.Forget(); }

 private:
  NamedHosts named_;
  std::vector<HostSpec> specs_;
};

// The source and what it watches. A plain value.
struct HostWatchPlan {
  enum class Source { kScript, kFile, kNames, kAllocation };
  Source source = Source::kNames;
  std::string file;                    // of kFile
  std::vector<HostSpec> specs;         // of kNames, kAllocation
  std::vector<std::string> simulated;  // names simulated by this machine (--hosts-per-machine)
};

// The source from --host-discovery-script, --hostfile or -H; by default this machine, with slots
// for the maximum number of ranks and spares. kInvalidArgument with one sentence; reads a host file
// for validation, but does not run a script. Appends messages for the user to `notes`.
Result<HostWatchPlan> PlanHostWatch(const Settings& settings, const SelectionFacts& facts,
                                    std::vector<std::string>& notes);

struct HostWatchProcess {
  std::vector<std::string> environment;          // of the script: "NAME=value"
  std::string directory;                         // working directory of the script
  std::shared_ptr<LocalFamily> family;           // shared by all children of this process
  std::function<void(const std::string&)> note;  // logs a sentence
  // For kAllocation: parses the output of settings.allocation_command; interval of its runs.
  ReadHosts read_allocation = {};
  Duration allocation_pause = std::chrono::seconds(15);
};

// Does not start it. `facts` are also used in other threads.
std::unique_ptr<HostWatch> MakeHostWatch(asio::io_context& io, const Settings& settings,
                                         const HostWatchPlan& plan, const SelectionFacts& facts,
                                         const HostWatchProcess& process);

// Blocks for the first answer of a host source, as long as the source takes (all have their own
// limits), then stops the watch. `io` is the
// watch's and runs nothing else meanwhile.
HostAnswer FirstAnswer(asio::io_context& io, HostWatch& watch);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_MAKE_HOST_WATCH_H_
