#include "launcher/agent/workers/master_port.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/text/format.h"

namespace hvd {

void MasterPort::Open(const StartJob& start, TimePoint now) {
  port_.LetServersListen();
  const bool is_here =
      std::ranges::any_of(start.slots, [](const Placement& p) { return p.rank == 0; });
  const bool is_ours = std::ranges::none_of(start.given_environment, [](const std::string& entry) {
    return entry.starts_with("MASTER_PORT=");
  });
  if (is_here && is_ours && start.master_port != 0) watched_until_ = now + kWatch;
}

std::optional<WorkerNotStarted> MasterPort::Look(const StartJob& start, TimePoint now) {
  if (!watched_until_) return std::nullopt;
  const std::optional<uid_t> listener = listener_at_(start.master_address, start.master_port);
  if (!listener && now < *watched_until_) return std::nullopt;
  watched_until_.reset();
  if (!listener || *listener == ::geteuid() || *listener == 0) return std::nullopt;
  return WorkerNotStarted{
      0, EADDRINUSE,
      Format(
          "port {} of host {}, which MASTER_PORT names, was taken by another user (uid {}) before "
          "rank 0 listened there; start the job again, or name another port with -x MASTER_PORT=N",
          start.master_port, start.host, *listener)};
}

}  // namespace hvd
