// HostsSession: the parts that a world of several hosts has beside those of one: the connections
// between hosts, and the backend that uses them.
#ifndef HVD_RUNTIME_API_HOSTS_SESSION_H_
#define HVD_RUNTIME_API_HOSTS_SESSION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/engine_options.h"
#include "runtime/backends/hosts/hosts_backend.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/backends/peers.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/engine.h"

namespace hvd {

// The world as this rank's engine sees it.
Group WorldGroup(const World& world);

class HostsSession {
 public:
  // Connects with other hosts, by `mpi` unless it is null; null for a world on one host.
  // kUnsupported with the reason where hosts cannot be connected.
  static Result<std::unique_ptr<InterHostComm>> Connect(const World& world, Bootstrap& bootstrap,
                                                        MpiWorld* mpi);

  // Everything given outlives the session.
  HostsSession(const World& world, std::unique_ptr<InterHostComm> comm, Peers& peers,
               Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory,
               const EngineOptions& engine, bool over_mpi);

  Backend& backend() { return backend_; }
  // For the runtime thread: ends what waits for other hosts once the world is broken, and tells the
  // launcher of hosts of which nothing is heard.
  void PollAgent(Bootstrap& bootstrap);
  // The traffic with other hosts since the last call; nothing while that is little or was a moment
  // ago.
  std::vector<InterHostLink> NewOnLinks(TimePoint now);
  // Why the work with other hosts broke off; "" while it goes on.
  std::string Failure() { return backend_.failure().message(); }
  // Says goodbye to the other hosts. Nothing may be in flight.
  void Leave() { backend_.Leave(); }
  // After Leave, when PollAgent is called no more.
  void Disconnect() { comm_.reset(); }

 private:
  const JobPage page_;
  std::unique_ptr<InterHostComm> comm_;
  HostsBackend backend_;
  void ReportSilences(Bootstrap& bootstrap);
  void ReportSilence(Bootstrap& bootstrap, const InterHostSilence& silence);

  bool aborted_ = false;
  const uint32_t rank_;
  std::vector<InterHostSilence> told_;  // that are not over
  uint32_t told_so_far_ = 0;
  std::map<uint32_t, InterHostLink> noted_;  // sums of the links, by rank
  TimePoint next_links_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_HOSTS_SESSION_H_
