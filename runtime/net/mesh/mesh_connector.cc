#include "runtime/net/mesh/mesh_connector.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "runtime/net/tcp_socket.h"

namespace hvd {
namespace {

constexpr int kMostRounds = 6;
constexpr Duration kFirstRetry = std::chrono::milliseconds(50);
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
// On an idle connection the kernel probes the other side each second; mesh_signs.h decides what
// silence means.
constexpr SilenceLimits kSilence{.idle_s = 1, .interval_s = 1, .probes = 120, .sending_ms = 0};

std::string Coordination(int error) { return std::generic_category().message(error); }

// The messages of a handshake are far smaller than the buffer of a new socket.
bool SendAll(int socket, const std::string& bytes) {
  ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

MeshConnector::MeshConnector(MeshConnectorOptions options, int epoll, MeshListener listener,
                             MeshConnectorOwner& owner)
    : options_(std::move(options)), epoll_(epoll), listener_(std::move(listener)), owner_(owner) {
  ResumeListeners();
}

void MeshConnector::ResumeListeners() {
  accept_again_ = TimePoint::max();
  for (size_t i = 0; i < listener_.sockets.size(); ++i) {
    epoll_event event{EPOLLIN, {.u64 = MeshEventKey(MeshSource::kListener, i)}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_.sockets[i].get(), &event);
  }
}

void MeshConnector::PauseListeners(TimePoint until) {
  accept_again_ = until;
  for (UniqueFd& socket : listener_.sockets) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket.get(), nullptr);
  }
}

void MeshConnector::Add(Nascent nascent, uint32_t events) {
  uint64_t id = next_id_++;
  epoll_event event{events, {.u64 = MeshEventKey(MeshSource::kNascent, id)}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, nascent.socket.get(), &event);
  nascents_.emplace(id, std::move(nascent));
}

// ---- dialing

void MeshConnector::Dial(MeshRoute to, std::vector<MeshAddress> addresses, TimePoint now) {
  Dialing& dialing = dialings_[to];
  dialing.addresses = std::move(addresses);
  dialing.deadline = now + options_.connect_timeout;
  StartRound(to, now);
}

void MeshConnector::StartRound(MeshRoute to, TimePoint now) {
  Dialing& dialing = dialings_.at(to);
  dialing.retry_at = TimePoint::max();
  dialing.reasons.clear();
  dialing.all_refused = true;
  ++dialing.round;
  for (const MeshAddress& address : dialing.addresses) {
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int error = socket.valid() ? 0 : errno;
    if (error == 0 && ::connect(socket.get(), address.get(), address.length) != 0) error = errno;
    if (error != 0 && error != EINPROGRESS) {
      NoteFailure(to, address.Text(), Coordination(error), error == ECONNREFUSED);
      continue;
    }
    PrepareTcp(socket.get(), kSilence);
    Nascent nascent{std::move(socket), address.Text(), dialing.deadline, true};
    nascent.initiator = std::make_unique<MeshInitiator>(options_.identity, to.rank, to.stripe);
    if (!nascent.initiator->status().ok()) {
      NoteFailure(to, address.Text(), nascent.initiator->status().message(), false);
      continue;
    }
    nascent.to = to;
    ++dialing.open;
    Add(std::move(nascent), EPOLLOUT);
  }
  EndRoundIfOver(to, now);
}

void MeshConnector::NoteFailure(MeshRoute to, const std::string& address, const std::string& why,
                                bool refused) {
  Dialing& dialing = dialings_.at(to);
  dialing.reasons += (dialing.reasons.empty() ? "" : "; ") + address + ": " + why;
  dialing.all_refused = dialing.all_refused && refused;
}

void MeshConnector::EndRoundIfOver(MeshRoute to, TimePoint now) {
  auto at = dialings_.find(to);
  if (at == dialings_.end() || at->second.open > 0) return;
  Dialing& dialing = at->second;
  TimePoint retry = now + kFirstRetry * (1 << dialing.round);
  if (!dialing.all_refused && dialing.round < kMostRounds && retry < dialing.deadline) {
    dialing.retry_at = retry;
    return;
  }
  std::string reasons =
      dialing.reasons.empty() ? "it gave no address that this host can use" : dialing.reasons;
  dialings_.erase(at);
  owner_.Unreachable(
      to.rank, Aborted(options_.name(options_.identity.rank) + " cannot reach " +
                       options_.name(to.rank) + " (" + reasons + ")" + std::string(kReachAdvice)));
}

std::string MeshConnector::FinishConnect(NascentPlace at) {
  Nascent& nascent = at->second;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(nascent.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return Coordination(error);
  nascent.connecting = false;
  if (!SendAll(nascent.socket.get(), nascent.initiator->hello())) return "it closed at once";
  epoll_event event{EPOLLIN, {.u64 = MeshEventKey(MeshSource::kNascent, at->first)}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, nascent.socket.get(), &event);
  return "";
}

// ---- accepting

void MeshConnector::HandleListener(size_t index, TimePoint now) {
  if (index >= listener_.sockets.size()) return;
  for (int i = 0; i < 16; ++i) {
    UniqueFd socket(
        ::accept4(listener_.sockets[index].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      Accept(std::move(socket), now);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      return PauseListeners(now + kAcceptPause);
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void MeshConnector::Accept(UniqueFd socket, TimePoint now) {
  if (strangers_ >= options_.most_strangers) {
    auto oldest = std::find_if(nascents_.begin(), nascents_.end(),
                               [](const auto& n) { return n.second.responder != nullptr; });
    Drop(oldest, "too many strangers", now);
  }
  PrepareTcp(socket.get(), kSilence);
  const std::string from = PeerAddress(socket.get()).Text();
  Nascent nascent{std::move(socket), from, now + options_.handshake_timeout};
  nascent.responder = std::make_unique<MeshResponder>(options_.identity);
  ++strangers_;
  Add(std::move(nascent), EPOLLIN);
}

// ---- both

std::string MeshConnector::Converse(NascentPlace at, bool* complete) {
  Nascent& nascent = at->second;
  std::array<char, 128> bytes;
  while (!*complete) {
    size_t wanted = nascent.initiator ? nascent.initiator->Wanted() : nascent.responder->Wanted();
    ssize_t got = ::recv(nascent.socket.get(), bytes.data(), std::min(wanted, bytes.size()), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return "";
    if (got < 0) return Coordination(errno);
    if (got == 0) return "it closed the connection without an answer";
    std::string_view part(bytes.data(), static_cast<size_t>(got));
    Result<std::string> answer =
        nascent.initiator ? nascent.initiator->Receive(part) : nascent.responder->Receive(part);
    if (!answer.ok()) return answer.status().message();
    if (!answer->empty() && !SendAll(nascent.socket.get(), *answer)) {
      return "it closed during the handshake";
    }
    *complete = nascent.initiator ? !answer->empty() : nascent.responder->Wanted() == 0;
  }
  return "";
}

void MeshConnector::HandleNascent(uint64_t id, TimePoint now) {
  NascentPlace at = nascents_.find(id);
  if (at == nascents_.end()) return;
  bool complete = false;
  bool was_connecting = at->second.connecting;
  std::string over = was_connecting ? FinishConnect(at) : Converse(at, &complete);
  if (!over.empty())
    return Drop(at, over, now, was_connecting && over == Coordination(ECONNREFUSED));
  if (complete) Win(at);
}

void MeshConnector::Win(NascentPlace at) {
  Nascent won = std::move(at->second);
  nascents_.erase(at);
  if (won.responder) {
    --strangers_;
    const MeshRoute from = won.responder->from();
    MeshGreeting greeting{won.address, true, from.stripe, {}};
    if (options_.session_keys) greeting.keys = won.responder->SessionKeys();
    return owner_.Connected(from.rank, std::move(won.socket), greeting);
  }
  std::erase_if(nascents_, [&](const auto& n) {
    return n.second.initiator != nullptr && n.second.to == won.to;
  });
  dialings_.erase(won.to);
  MeshGreeting greeting{won.address, false, won.to.stripe, {}};
  if (options_.session_keys) greeting.keys = won.initiator->SessionKeys();
  owner_.Connected(won.to.rank, std::move(won.socket), greeting);
}

void MeshConnector::Drop(NascentPlace at, const std::string& why, TimePoint now, bool refused) {
  Nascent dropped = std::move(at->second);
  nascents_.erase(at);
  if (dropped.responder) {
    --strangers_;
    return;
  }
  NoteFailure(dropped.to, dropped.address, why, refused);
  --dialings_.at(dropped.to).open;
  EndRoundIfOver(dropped.to, now);
}

void MeshConnector::Tick(TimePoint now) {
  if (accept_again_ <= now) ResumeListeners();
  for (auto at = nascents_.begin(); at != nascents_.end();) {
    auto here = at++;
    if (here->second.deadline > now) continue;
    Drop(here, "no answer in time", now);
    at = nascents_.begin();  // Drop may have removed others
  }
  std::vector<MeshRoute> due;
  for (const auto& [to, dialing] : dialings_) {
    if (dialing.retry_at <= now) due.push_back(to);
  }
  for (MeshRoute to : due) StartRound(to, now);
}

TimePoint MeshConnector::NextTick() const {
  TimePoint next = accept_again_;
  for (const auto& [id, nascent] : nascents_) next = std::min(next, nascent.deadline);
  for (const auto& [to, dialing] : dialings_) next = std::min(next, dialing.retry_at);
  return next;
}

bool MeshConnector::Expects(MeshRoute from) const {
  return std::ranges::any_of(nascents_, [from](const auto& entry) {
    const MeshResponder* responder = entry.second.responder.get();
    return responder != nullptr && responder->greeted() && responder->from() == from;
  });
}

void MeshConnector::Close() {
  nascents_.clear();
  dialings_.clear();
  strangers_ = 0;
  listener_.sockets.clear();
  accept_again_ = TimePoint::max();
}

}  // namespace hvd
