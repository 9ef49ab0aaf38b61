#include "launcher/channels/ssh/handshake_gate.h"

#include <algorithm>

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(100);
constexpr Duration kLongestDelay = std::chrono::seconds(2);
constexpr int kMostDoublings = 10;

}  // namespace

HandshakeGate::Door& HandshakeGate::DoorTo(const std::string& address) {
  Door& door = doors_[address];
  if (door.width == 0) door.width = width_;
  return door;
}

bool HandshakeGate::Enter(const std::string& address, Ticket ticket) {
  Door& door = DoorTo(address);
  if (door.inside.size() < door.width && door.line.empty()) {
    door.inside.insert(ticket);
    return true;
  }
  door.line.push_back(ticket);
  return false;
}

std::vector<HandshakeGate::Ticket> HandshakeGate::Leave(const std::string& address, Ticket ticket) {
  Door& door = DoorTo(address);
  door.inside.erase(ticket);
  std::erase(door.line, ticket);
  std::vector<Ticket> next;
  while (door.inside.size() < door.width && !door.line.empty()) {
    next.push_back(door.line.front());
    door.inside.insert(door.line.front());
    door.line.pop_front();
  }
  return next;
}

void HandshakeGate::NoteRefusal(const std::string& address) {
  Door& door = DoorTo(address);
  door.width = std::max<size_t>(1, door.width / 2);
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
