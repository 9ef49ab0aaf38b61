// HostsSession: the additional parts of a multi-host world: the connections between hosts and the
// backend that uses them.
#ifndef HVD_RUNTIME_API_HOSTS_SESSION_H_
#define HVD_RUNTIME_API_HOSTS_SESSION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/backend_list.h"
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
  // Connects to the other hosts with the backend for such a world; `mpi` may be null. Returns null
  // for a world on one host. kUnsupported with the reason if hosts cannot be connected.
  static Result<std::unique_ptr<InterHostComm>> Connect(const World& world,
                                                        const BackendFacts& facts,
                                                        Bootstrap& bootstrap, MpiWorld* mpi);

  // All arguments passed by reference outlive the session.
  HostsSession(const World& world, std::unique_ptr<InterHostComm> comm, Peers& peers,
               Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory,
               const EngineOptions& engine, bool over_mpi);

  Backend& backend() { return backend_; }
  // For the runtime thread: once the world is broken, aborts what waits for other hosts; reports
  // silent hosts to the launcher.
  void PollAgent(Bootstrap& bootstrap);
  // The traffic with other hosts since the last call; empty if there was little, or if the last
  // call was less than a second ago.
  std::vector<InterHostLink> NewOnLinks(TimePoint now);
  // Why communication with other hosts failed; "" if it has not.
  std::string Failure() { return backend_.failure().message(); }
  // Leaves the other hosts in an orderly way. Nothing may be in flight.
  void Leave() { backend_.Leave(); }
  // Call after Leave, once PollAgent is no longer called.
  void Disconnect() { comm_.reset(); }

 private:
  const JobPage page_;
  std::unique_ptr<InterHostComm> comm_;
  HostsBackend backend_;
  void ReportSilences(Bootstrap& bootstrap);
  void ReportSilence(Bootstrap& bootstrap, const InterHostSilence& silence);

  bool aborted_ = false;
  const uint32_t rank_;
  std::vector<InterHostSilence> reported_silences_;  // reported and not over
  uint32_t reports_sent_ = 0;
  std::map<uint32_t, InterHostLink> noted_;  // totals of the links, by rank
  TimePoint next_links_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_HOSTS_SESSION_H_
