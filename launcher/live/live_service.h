// LiveService: serves live data of a job to hvdrun top, hvdrun dump and Prometheus. While there are
// viewers, it polls the agents' counters once a second and makes a JobView of the answers. A dump
// goes host by host, as fast as its client reads it.
//
// One thread, that of the io_context; never blocks.
#ifndef HVD_LAUNCHER_LIVE_LIVE_SERVICE_H_
#define HVD_LAUNCHER_LIVE_LIVE_SERVICE_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/host_records/host_clock.h"
#include "launcher/live/host_offset.h"
#include "launcher/live/job_view.h"
#include "launcher/live/metrics_server.h"
#include "launcher/live/view_server.h"
#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

class LiveService {
 public:
  // Access to the driver's state of the job.
  struct Hooks {
    std::function<JobView()> outline;              // without the agents' counters
    std::function<std::vector<uint32_t>()> hosts;  // that have a part of the job
    std::function<void(uint32_t host, const ToAgent&)> send;
    std::function<std::string(uint32_t host)> name_of;
    std::function<const HostClock&(uint32_t host)> clock_of;
  };
  LiveService(asio::io_context& io, Hooks hooks);
  ~LiveService() { Close(); }
  LiveService(const LiveService&) = delete;

  Status Open(const std::string& job_id);
  // Serves metrics; the agents are polled permanently from now on. Not ok: a sentence about address
  // and port.
  Status OpenMetrics(const std::string& address, uint16_t port);
  std::string metrics_address() const { return metrics_ ? metrics_->address() : ""; }
  // Closes all connections.
  void Close();

  // Handles answers of agents. Not ok: the answer violates the protocol.
  Status Handle(uint32_t host, const CountsReply& reply);
  void Handle(uint32_t host, const RingReply& reply);
  void Handle(uint32_t host, const RingsOver& over);
  void Handle(uint32_t host, const StacksReply& reply);

 private:
  // The last counts of one worker, and the rates since the ones before.
  struct Looks {
    uint32_t host = 0;
    uint64_t generation = 0;
    int64_t at_ns = 0;
    WorkerCounts counts;
    std::optional<RankRates> rates;
  };
  // A dump under way.
  struct Dump {
    uint64_t client = 0;
    Dumped dumped = Dumped::kEvents;
    std::deque<uint32_t> hosts;  // remaining; the first one is being asked
    uint32_t number = 0;         // of the question
    bool answered = false;       // the host has sent everything; the client is still reading
    std::string missing;         // names of hosts that did not answer
  };

  bool wanted() const;
  void Look();
  void AskAll();
  void PublishView();
  JobView View() const;
  void BeginDump(uint64_t client, Dumped dumped);
  void AskNext();
  void EndHost(bool answered);
  void EndDump();

  asio::io_context& io_;
  const Hooks hooks_;
  asio::steady_timer look_timer_, dump_timer_;
  bool looking_ = false;
  ViewServer server_;
  std::unique_ptr<MetricsServer> metrics_;
  uint32_t number_ = 0;
  std::set<uint32_t> awaited_;       // hosts that have not answered the last question
  bool published_ = true;            // the answers to the last question
  std::map<uint32_t, Looks> looks_;  // by worker
  std::deque<std::pair<uint64_t, Dumped>> dump_clients_;
  std::optional<Dump> dump_;
  std::map<uint32_t, HostOffset> offsets_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_LIVE_SERVICE_H_
