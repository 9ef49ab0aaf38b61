#include "launcher/channels/ssh/ssh_hub.h"

#include <signal.h>

#include <asio/post.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/log.h"

namespace hvd {

SshHub::SshHub(asio::io_context& io, std::shared_ptr<LocalFamily> family)
    : io_(io), family_(std::move(family)), names_(io), child_signal_(io) {}

HandshakeGate::Ticket SshHub::EnterGate(const std::string& address, std::function<void()> on_turn) {
  HandshakeGate::Ticket ticket = next_ticket_++;
  if (gate_.Enter(address, ticket)) {
    on_turn();
  } else {
    in_line_[ticket] = std::move(on_turn);
  }
  return ticket;
}

void SshHub::LeaveGate(const std::string& address, HandshakeGate::Ticket ticket) {
  in_line_.erase(ticket);
  for (HandshakeGate::Ticket next : gate_.Leave(address, ticket)) {
    auto waiting = in_line_.extract(next);
    if (!waiting.empty()) waiting.mapped()();
  }
}

void SshHub::WarnOnce(const std::string& sentence) {
  if (!sentence.empty() && warned_.insert(sentence).second) LogWarning(sentence);
}

void SshHub::WatchChild(pid_t pid, std::function<void(int)> on_exit) {
  family_->Add(pid);
  children_[pid] = std::move(on_exit);
  WaitForChildren();
  asio::post(io_, [this] { ReportExits(); });  // it may have ended before we began to wait
}

void SshHub::KillChild(pid_t pid) {
  family_->Reap();
  // Not reaped: the number is still its own.
  if (children_.contains(pid) && !family_->StatusOf(pid)) ::kill(-pid, SIGKILL);
}

void SshHub::WaitForChildren() {
  if (std::exchange(waiting_, true)) return;
  child_signal_.add(SIGCHLD);
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    waiting_ = false;
    if (!children_.empty()) WaitForChildren();
    ReportExits();
  });
}

void SshHub::ReportExits() {
  family_->Reap();
  std::vector<std::pair<std::function<void(int)>, int>> ended;
  for (auto child = children_.begin(); child != children_.end();) {
    std::optional<int> status = family_->StatusOf(child->first);
    if (status) ended.emplace_back(std::move(child->second), *status);
    child = status ? children_.erase(child) : std::next(child);
  }
  if (children_.empty() && std::exchange(waiting_, false)) child_signal_.clear();
  for (auto& [on_exit, status] : ended) on_exit(status);
}

}  // namespace hvd
