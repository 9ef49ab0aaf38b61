// WorkerStdin: reads hvdrun's stdin and sends it to the hosts whose ranks read it, as fast as the
// slowest of them reads (StdinBroadcast).
//
// One thread, that of the io_context, apart from that of the reader.
#ifndef HVD_LAUNCHER_DRIVER_WORKER_STDIN_H_
#define HVD_LAUNCHER_DRIVER_WORKER_STDIN_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/services/stdin_broadcast.h"
#include "launcher/output/screen.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

class WorkerStdin {
 public:
  // All of them outlive this object.
  WorkerStdin(asio::io_context& io, const DriverOptions& options, AgentSet& agents, Screen& screen)
      : io_(io), options_(options), agents_(agents), screen_(screen) {}
  WorkerStdin(const WorkerStdin&) = delete;

  // Call once the agents know which ranks read it; earlier input would get lost.
  void Start(const Plan& plan, const JobHosts& hosts);
  void Stop() { reader_.reset(); }
  // The workers of a host have read some of it. Not ok: a sentence about "its agent", for
  // AgentConnection::Break.
  Status Handle(uint32_t host, const InputTaken& taken, TimePoint);

 private:
  void Send(std::string bytes);

  asio::io_context& io_;
  const DriverOptions& options_;
  AgentSet& agents_;
  Screen& screen_;
  std::optional<StdinBroadcast> broadcast_;  // while ranks read stdin
  std::unique_ptr<StdinReader> reader_;      // last: its thread posts to io_
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_WORKER_STDIN_H_
