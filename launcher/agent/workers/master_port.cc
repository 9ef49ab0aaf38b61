#include "launcher/agent/workers/master_port.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr const char* kAdvice = "start the job again, or name another port with -x MASTER_PORT=N";

}  // namespace

void MasterPort::Open(const StartJob& start, TimePoint now) {
  port_.LetServersListen();
  const bool is_here =
      std::ranges::any_of(start.ranks.slots, [](const Placement& p) { return p.rank == 0; });
  const bool is_ours = std::ranges::none_of(start.program.given, [](const std::string& entry) {
    return entry.starts_with("MASTER_PORT=");
  });
  if (is_here && is_ours && start.meeting.master_port != 0) watched_until_ = now + kWatch;
}

void MasterPort::LookForListener(const StartJob& start, TimePoint now) {
  const std::optional<uid_t> listener =
      tables_.listener_at(start.meeting.master_address, start.meeting.master_port);
  if (!listener && now < *watched_until_) return;
  watched_until_.reset();
  if (!listener || *listener == ::geteuid() || *listener == 0) return;
  stranger_ = MasterPortTaken{*listener, start.meeting.master_port, start.host};
  send_(*stranger_);
}

// The first check that finds the server may already find a rank connected to it.
void MasterPort::Look(const StartJob& start, TimePoint now) {
  if (watched_until_) LookForListener(start, now);
  if (!stranger_ || start.ranks.slots.empty()) return;
  if (!tables_.connected_to(start.meeting.master_address, stranger_->port, ::geteuid())) return;
  const uint32_t worker =
      start.ranks.workers.empty() ? start.ranks.slots[0].rank : start.ranks.workers[0];
  send_(WorkerNotStarted{
      worker, EADDRINUSE,
      Format("a rank on host {} connected to port {} of host {}, which MASTER_PORT names, and "
             "another user (uid {}) listens there; {}",
             start.host, stranger_->port, stranger_->host, stranger_->uid, kAdvice)});
  stranger_.reset();
}

}  // namespace hvd
