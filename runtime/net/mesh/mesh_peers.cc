// The part of Mesh that reads, writes, connects and loses its peers. All of it runs under the
// mesh's lock.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "runtime/net/mesh/mesh.h"

namespace hvd {
namespace {

// One turn at one connection; then others are looked at.
constexpr size_t kMostReadAtOnce = 4 << 20;
constexpr size_t kPiecesAtOnce = 32;

std::string Coordination(int error) { return std::generic_category().message(error); }

// A rank that leaves in peace and never sent anything says so on the connection made to it.
bool ByeCameBack(const UniqueFd& socket) {
  MeshHeader header;
  ssize_t got = ::recv(socket.get(), header.data(), header.size(), MSG_DONTWAIT);
  if (got != static_cast<ssize_t>(header.size())) return false;
  Result<MeshFrame> frame = DecodeMeshHeader(header.data());
  return frame.ok() && frame->type == MeshFrameType::kBye && frame->bytes == 0;
}

size_t BytesOf(std::span<const iovec> pieces) {
  size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

Mesh::Peer& Mesh::PeerOf(uint32_t rank) {
  std::unique_ptr<Peer>& peer = peers_[rank];
  if (peer == nullptr) peer = std::make_unique<Peer>(rank, options_.most_kept_bytes, any_);
  return *peer;
}

Mesh::Peer* Mesh::FindPeer(uint64_t rank) {
  auto at = peers_.find(static_cast<uint32_t>(rank));
  return at == peers_.end() ? nullptr : at->second.get();
}

std::string Mesh::NameOf(const Peer& peer) const {
  return "rank " + std::to_string(peer.rank) + (peer.address.empty() ? "" : " at " + peer.address);
}

std::string Mesh::AddressOf(uint32_t rank) {
  std::lock_guard lock(mutex_);
  std::string address = PeerOf(rank).address;
  address = address.substr(0, address.rfind(':'));
  return address.starts_with('[') ? address.substr(1, address.size() - 2) : address;
}

// ---- connecting

void Mesh::Connect(Peer& peer) {
  if (peer.dial != Dial::kNone) return;
  peer.dial = Dial::kInFlight;
  resolver_.Ask(peer.rank, SteadyNow() + options_.connect_timeout);
}

void Mesh::Resolved(uint32_t rank, Result<MeshRecord> record) {
  std::lock_guard lock(mutex_);
  Peer& peer = PeerOf(rank);
  if (!peer.lost.ok() || !aborted_.ok()) return;
  if (!record.ok()) {
    Unreachable(rank, record.status());
  } else {
    connector_.Dial(rank, Reachable(*record, record_.machine), SteadyNow());
  }
  SendToAll();
  Kick();  // a thread that polls has a new time to look at
}

void Mesh::Connected(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting) {
  const bool incoming = greeting.incoming;
  Peer& peer = PeerOf(rank);
  UniqueFd& place = incoming ? peer.in : peer.out;
  if (!peer.lost.ok() || place.valid()) return;
  place = std::move(socket);
  if (peer.address.empty() || !incoming) peer.address = greeting.address;
  MeshSource source = incoming ? MeshSource::kIncoming : MeshSource::kOutgoing;
  uint32_t& events = incoming ? peer.in_events : peer.out_events;
  events = EPOLLIN | EPOLLRDHUP;
  epoll_event event{events, {.u64 = MeshEventKey(source, rank)}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, place.get(), &event);
  if (incoming) return Read(peer, nullptr);
  peer.dial = Dial::kDone;
  Write(peer);
}

void Mesh::Unreachable(uint32_t rank, Status why) {
  Peer& peer = PeerOf(rank);
  Lose(peer, why.code() == Code::kAborted ? why : Aborted(why.message()));
}

// Looks for what can be done on both connections, and for nothing else.
void Mesh::Arm(Peer& peer) {
  uint32_t in = peer.reader.held() ? 0 : EPOLLIN | EPOLLRDHUP;
  if (peer.in.valid() && in != peer.in_events) {
    epoll_event event{in, {.u64 = MeshEventKey(MeshSource::kIncoming, peer.rank)}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.in.get(), &event);
    peer.in_events = in;
  }
  uint32_t out = EPOLLIN | EPOLLRDHUP;
  if (!peer.outbox.empty()) out |= EPOLLOUT;
  if (peer.out.valid() && out != peer.out_events) {
    epoll_event event{out, {.u64 = MeshEventKey(MeshSource::kOutgoing, peer.rank)}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.out.get(), &event);
    peer.out_events = out;
  }
}

// ---- moving bytes

void Mesh::Read(Peer& peer, const MeshTransfer* until) {
  if (!peer.in.valid()) return;
  if (Status resumed = peer.reader.Resume(); !resumed.ok()) {
    return EndOfIncoming(peer, resumed.message());
  }
  size_t total = 0;
  std::array<iovec, 2> room;
  while (total < kMostReadAtOnce && !(until != nullptr && until->done)) {
    size_t pieces = peer.reader.Room(&room);
    if (pieces == 0) break;  // held
    ssize_t got = ::readv(peer.in.get(), room.data(), static_cast<int>(pieces));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return EndOfIncoming(peer, Coordination(errno));
    if (got == 0) return EndOfIncoming(peer, "it closed the connection");
    total += static_cast<size_t>(got);
    moved_ += static_cast<size_t>(got);
    peer.moved += static_cast<size_t>(got);
    size_t asked = BytesOf({room.data(), pieces});
    if (Status filled = peer.reader.Filled(static_cast<size_t>(got)); !filled.ok()) {
      return EndOfIncoming(peer, filled.message());
    }
    if (static_cast<size_t>(got) < asked) break;  // there was no more
  }
  if (!peer.outbox.empty()) Write(peer);  // leave was given to send
  Arm(peer);
}

void Mesh::Write(Peer& peer) {
  std::array<iovec, kPiecesAtOnce> room;
  while (peer.out.valid() && !peer.outbox.empty()) {
    msghdr message{};
    message.msg_iov = room.data();
    message.msg_iovlen = peer.outbox.Pieces(room);
    ssize_t sent = ::sendmsg(peer.out.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return EndOfOutgoing(peer, errno);
    moved_ += static_cast<size_t>(sent);
    peer.moved += static_cast<size_t>(sent);
    peer.outbox.Sent(static_cast<size_t>(sent));
  }
  Arm(peer);
}

void Mesh::CloseInForkedChild() {
  for (auto& [rank, peer] : peers_) {
    peer->in.Reset();
    peer->out.Reset();
  }
  connector_.Close();
  epoll_.Reset();
  kick_.Reset();
}

// ---- losing a peer

void Mesh::EndOfIncoming(Peer& peer, const std::string& why) {
  const std::string& bye = peer.inbox.bye_text();
  if (!peer.inbox.bye()) {
    Lose(peer, Aborted(NameOf(peer) + " is gone: " + why));
  } else if (bye.empty()) {
    Lose(peer, Aborted(NameOf(peer) + " has left"));
  } else {
    AbortAll(Aborted(bye), bye);
  }
}

// Its messages to us may still be under way, and its last words: the other connection says when
// they are over. A peer that has finished and left may have done so before that connection was
// taken here.
void Mesh::EndOfOutgoing(Peer& peer, int error) {
  std::string why = error == 0 ? "it closed the connection" : Coordination(error);
  bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  if (ByeCameBack(peer.out)) peer.inbox.NoteBye();
  peer.out.Reset();
  const bool late = !peer.in.valid() && connector_.Expects(peer.rank);
  if (silent || (!peer.in.valid() && !late)) return EndOfIncoming(peer, why);
  peer.outbox.Fail(Aborted(NameOf(peer) + " is gone: " + why));
  if (late) {
    late_.emplace_back(peer.rank, why);
  } else {
    Read(peer, nullptr);
  }
}

void Mesh::LoseLate() {
  std::erase_if(late_, [this](const auto& entry) {
    const auto& [rank, why] = entry;
    if (connector_.Expects(rank)) return false;
    if (Peer& peer = PeerOf(rank); !peer.in.valid()) EndOfIncoming(peer, why);
    return true;
  });
}

// Under the lock, and for all: the driving thread looks.
void Mesh::LookForSilence(TimePoint now) {
  next_silence_look_ = now + kSilenceLook;
  std::vector<MeshSilence> silences;
  for (auto& [rank, peer] : peers_) {
    std::array<ConnectionSigns, 2> signs;
    size_t known = 0;
    for (const UniqueFd* socket : {&peer->in, &peer->out}) {
      if (socket->valid()) signs[known++] = SignsOf(socket->get());
    }
    const Duration silent = SilenceOf({signs.data(), known});
    if (silent >= kSilenceTold) silences.push_back({rank, silent});
    if (silent < kSilenceLost) continue;
    Lose(*peer, Aborted(NameOf(*peer) + " is gone: nothing has been heard of its host for " +
                        std::to_string(kSilenceLost / std::chrono::seconds(1)) + " s"));
  }
  std::lock_guard lock(silences_mutex_);
  silences_ = std::move(silences);
}

std::vector<MeshSilence> Mesh::Silences() const {
  std::lock_guard lock(silences_mutex_);
  return silences_;
}

void Mesh::Lose(Peer& peer, const Status& why) {
  if (!peer.lost.ok()) return;
  peer.lost = why;
  if (!peer.LeftInPeace()) ++losses_;
  peer.in.Reset();
  peer.out.Reset();
  peer.outbox.Fail(why);
  peer.inbox.Fail(why);
}

}  // namespace hvd
