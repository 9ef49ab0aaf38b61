#include "launcher/start_job.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

BindTo ParseBindTo(const std::string& word) {
  if (word == "core") return BindTo::kCore;
  return word == "numa" ? BindTo::kNuma : BindTo::kNone;
}

StdinTo ParseStdinTo(const std::string& word) {
  if (word == "all") return StdinTo::kAll;
  return word == "rank0" ? StdinTo::kRank0 : StdinTo::kNone;
}

}  // namespace

StartJob StartJobFor(const DriverOptions& options, uint32_t host) {
  StartJob start;
  start.job_key = options.job_key;
  start.host = options.plan.hosts[host];
  start.size = options.plan.size();
  start.homogeneous = options.plan.homogeneous ? 1 : 0;
  start.slots = options.plan.OnHost(host);
  start.argv = options.command;
  start.directory = options.directory;
  start.environment = options.environment;
  start.worker_environment = options.settings.worker_environment;
  start.given_environment = options.given_environment;
  start.master_address = "127.0.0.1";  // all ranks are on this machine
  start.master_port = options.master_port;
  start.omp_threads = options.settings.omp_threads;
  start.bind_to = ParseBindTo(options.settings.bind_to);
  start.stdin_to = ParseStdinTo(options.settings.stdin_to);
  start.terminate_grace_ms = static_cast<int64_t>(options.settings.terminate_grace_seconds * 1e3);
  start.driver_grace_ms = static_cast<int64_t>(options.settings.driver_grace_seconds * 1e3);
  return start;
}

uint32_t FreePort() {
  UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  socklen_t length = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!probe.valid() || ::bind(probe.get(), generic, length) != 0 ||
      ::getsockname(probe.get(), generic, &length) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

}  // namespace hvd
