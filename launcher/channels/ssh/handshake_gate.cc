#include "launcher/channels/ssh/handshake_gate.h"

#include <algorithm>

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(100);
constexpr Duration kLongestDelay = std::chrono::seconds(2);
constexpr int kMostDoublings = 10;

}  // namespace

HandshakeGate::Server& HandshakeGate::ServerAt(const std::string& address) {
  Server& server = servers_[address];
  if (server.most == 0) server.most = width_;
  return server;
}

bool HandshakeGate::Enter(const std::string& address, Ticket ticket) {
  Server& server = ServerAt(address);
  if (server.logging_in.size() < server.most && server.waiting.empty()) {
    server.logging_in.insert(ticket);
    return true;
  }
  server.waiting.push_back(ticket);
  return false;
}

std::vector<HandshakeGate::Ticket> HandshakeGate::Leave(const std::string& address, Ticket ticket) {
  Server& server = ServerAt(address);
  server.logging_in.erase(ticket);
  std::erase(server.waiting, ticket);
  std::vector<Ticket> next;
  while (server.logging_in.size() < server.most && !server.waiting.empty()) {
    next.push_back(server.waiting.front());
    server.logging_in.insert(server.waiting.front());
    server.waiting.pop_front();
  }
  return next;
}

void HandshakeGate::NoteRefusal(const std::string& address) {
  Server& server = ServerAt(address);
  server.most = std::max<size_t>(1, server.most / 2);
}

std::optional<Duration> RefusalPatience::OnRefusal(TimePoint now, double chance) {
  if (!first_) first_ = now;
  Duration delay =
      std::min(kFirstDelay * (1 << std::min(refusals_, kMostDoublings)), kLongestDelay);
  ++refusals_;
  delay = std::chrono::duration_cast<Duration>(delay * (0.5 + chance));
  if (now - *first_ + delay > limit_) return std::nullopt;
  return delay;
}

}  // namespace hvd
