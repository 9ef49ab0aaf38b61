#include "runtime/net/mesh/mesh_peers.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Limit per turn of one connection; then the others are polled.
constexpr size_t kMostReadAtOnce = 4 << 20;
constexpr size_t kPiecesAtOnce = 32;
// Messages that fit into one packet with their header share a connection with those of the other
// direction: it also carries their acknowledgements.
constexpr size_t kMostShared = 1280;

const char* const kClosed = "it closed the connection";

std::string ErrorText(int error) { return std::generic_category().message(error); }

size_t BytesOf(std::span<const iovec> pieces) {
  size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

// ---- transfers

void MeshPeers::Begin(std::span<MeshTransfer* const> transfers) {
  for (MeshTransfer* transfer : transfers) {
    if (!transfer->done) Queue(transfer);
  }
  for (const MeshTransfer* transfer : transfers) {
    MeshPeer* peer = table_.Find({transfer->peer, transfer->stripe});
    if (peer == nullptr || !std::exchange(peer->queued, false)) continue;
    if (!peer->out.outbox.empty()) Dial(*peer);
    WriteBoth(*peer);
    ReadHeld(*peer);
  }
}

// The lower rank of the two has dialled the connection for small messages. The higher one uses it
// once it exists, and if no message with this tag waits on its own.
MeshOutbox& MeshPeers::OutboxFor(MeshPeer& peer, const MeshTransfer& transfer) const {
  const bool shared = transfer.bytes <= kMostShared && peer.answers_over_in &&
                      peer.in.socket.valid() && !peer.in_ended;
  return shared && !peer.out.outbox.Parks(transfer.tag) ? peer.in.outbox : peer.out.outbox;
}

void MeshPeers::Queue(MeshTransfer* transfer) {
  if (transfer->peer == kAnyMeshPeer) return BeginReceiveOfAny(transfer);
  MeshPeer& peer = table_.Of({transfer->peer, transfer->stripe});
  peer.queued = peer.lost.ok();
  if (transfer->kind != MeshTransfer::Kind::kSend) {
    peer.inbox.Receive(transfer);  // which may grant permission for a large message
    if (!peer.lost.ok()) peer.inbox.Fail(peer.lost);
  } else if (peer.lost.ok()) {
    MeshOutbox& outbox = OutboxFor(peer, *transfer);
    outbox.Send(transfer);
    if (&outbox == &peer.out.outbox) Dial(peer);  // also for a message without permission yet
  } else {
    transfer->Finish(peer.lost);
  }
}

void MeshPeers::BeginReceiveOfAny(MeshTransfer* transfer) {
  bool kept = false;
  table_.ForEach([&](MeshPeer& peer) { kept = kept || peer.inbox.ReceiveKept(transfer); });
  if (kept) return;
  table_.any().push_back(transfer);
  table_.ForEach([this](MeshPeer& peer) { ReadHeld(peer); });
}

void MeshPeers::GiveUp(MeshTransfer* transfer) {
  if (transfer->done) return;
  if (transfer->peer == kAnyMeshPeer) {
    std::erase(table_.any(), transfer);
    return;
  }
  MeshPeer& peer = table_.Of({transfer->peer, transfer->stripe});
  const bool clean = transfer->kind == MeshTransfer::Kind::kSend
                         ? peer.out.outbox.Cancel(transfer) && peer.in.outbox.Cancel(transfer)
                         : peer.inbox.Cancel(transfer);
  if (!clean) {
    Lose(peer, Aborted("the connection to " + peer.Name() +
                       " was closed because a message was given up halfway"));
  }
}

// ---- connecting

void MeshPeers::Dial(MeshPeer& peer) {
  if (peer.dial != MeshPeer::Dial::kNone) return;
  peer.dial = MeshPeer::Dial::kInFlight;
  owner_.Dial(peer.route());
}

void MeshPeers::Attach(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting) {
  const bool incoming = greeting.incoming;
  MeshPeer& peer = table_.Of({rank, greeting.stripe});
  MeshConnection& place = incoming ? peer.in : peer.out;
  if (!peer.lost.ok() || place.socket.valid()) return;
  place.socket = std::move(socket);
  if (peer.address.empty() || !incoming) peer.address = greeting.address;
  Arm(peer, place);
  if (incoming) return Read(peer, place, nullptr);
  peer.dial = MeshPeer::Dial::kDone;
  Write(peer, place);
}

void MeshPeers::HandleIncoming(MeshRoute route, uint32_t events) {
  MeshPeer& peer = table_.Of(route);
  Handle(peer, peer.in, events);
}

void MeshPeers::HandleOutgoing(MeshRoute route, uint32_t events) {
  MeshPeer& peer = table_.Of(route);
  Handle(peer, peer.out, events);
}

void MeshPeers::Handle(MeshPeer& peer, MeshConnection& connection, uint32_t events) {
  if (!connection.socket.valid()) return;
  if ((events & EPOLLOUT) != 0) Write(peer, connection);
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (!broken && (events & (EPOLLIN | EPOLLRDHUP)) == 0) return;
  Read(peer, connection, nullptr);
  if (broken && connection.socket.valid() && connection.reader.held()) EndHeld(peer, connection);
}

// The epoll watches only for events by which something can be done.
void MeshPeers::Arm(MeshPeer& peer, MeshConnection& connection) {
  const bool held = connection.reader.held();
  if (!connection.socket.valid() || (held && !connection.watched)) return;
  uint32_t events = held ? 0 : EPOLLIN | EPOLLRDHUP;
  if (!connection.outbox.empty()) events |= EPOLLOUT;
  if (events == connection.events && connection.watched) return;
  const MeshSource source = &connection == &peer.in ? MeshSource::kIncoming : MeshSource::kOutgoing;
  epoll_event event{events, {.u64 = MeshEventKey(source, NumberOfRoute(peer.route()))}};
  const int change = std::exchange(connection.watched, true) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  ::epoll_ctl(epoll_, change, connection.socket.get(), &event);
  connection.events = events;
}

// ---- moving bytes

// The other connection may have waited for a message that came over this one.
void MeshPeers::Read(MeshPeer& peer, MeshConnection& from, const MeshTransfer* until) {
  MeshConnection* now = &from;
  uint64_t taken = 0;
  do {
    taken = peer.inbox.taken();
    if (!ReadSome(peer, *now, until)) return;
    now = &peer.Other(*now);
  } while (now->reader.held() && peer.inbox.taken() != taken);
  WriteBoth(peer);  // permission to send may have been granted
  Arm(peer, peer.in);
  Arm(peer, peer.out);
}

// A frame that was refused before may be accepted now.
void MeshPeers::ReadHeld(MeshPeer& peer) {
  for (MeshConnection* connection : {&peer.in, &peer.out}) {
    if (connection->reader.held()) Read(peer, *connection, nullptr);
  }
}

// False: the connection has ended, which was handled.
bool MeshPeers::ReadSome(MeshPeer& peer, MeshConnection& from, const MeshTransfer* until) {
  if (!from.socket.valid()) return true;
  if (Status resumed = from.reader.Resume(); !resumed.ok()) {
    EndOfIncoming(peer, resumed.message());
    return false;
  }
  size_t total = 0;
  std::array<iovec, 2> room;
  while (total < kMostReadAtOnce && !(until != nullptr && until->done)) {
    const size_t pieces = from.reader.Room(&room);
    if (pieces == 0) break;  // held
    const ssize_t got = ::readv(from.socket.get(), room.data(), static_cast<int>(pieces));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      End(peer, from, got < 0 ? errno : 0);
      return false;
    }
    total += static_cast<size_t>(got);
    table_.NoteMoved(peer, static_cast<size_t>(got));
    peer.last = &from;
    const size_t asked = BytesOf({room.data(), pieces});
    if (Status filled = from.reader.Filled(static_cast<size_t>(got)); !filled.ok()) {
      EndOfIncoming(peer, filled.message());
      return false;
    }
    if (static_cast<size_t>(got) < asked) break;  // there was no more
  }
  if (total != 0 && &from == &peer.in && peer.answers_over_in) {
    table_.OweAcknowledgement(peer);
    if (peer.inbox.PopCompletedLarge()) table_.Acknowledge();
  }
  return true;
}

void MeshPeers::WriteBoth(MeshPeer& peer) {
  if (!peer.out.outbox.empty()) Write(peer, peer.out);
  if (!peer.in.outbox.empty()) Write(peer, peer.in);
}

void MeshPeers::Write(MeshPeer& peer, MeshConnection& over) {
  std::array<iovec, kPiecesAtOnce> room;
  while (over.socket.valid() && !over.outbox.empty()) {
    msghdr message{};
    message.msg_iov = room.data();
    message.msg_iovlen = over.outbox.Pieces(room);
    ssize_t sent = ::sendmsg(over.socket.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      const int error = errno;
      if (!ReadSome(peer, over, nullptr)) return;  // reads what it sent last first
      return over.reader.held() ? EndHeld(peer, over) : End(peer, over, error);
    }
    if (&over == &peer.in) peer.owes = false;
    table_.NoteMoved(peer, static_cast<size_t>(sent));
    over.outbox.Sent(static_cast<size_t>(sent));
  }
  Arm(peer, over);
}

// ---- losing a peer

void MeshPeers::End(MeshPeer& peer, MeshConnection& connection, int error) {
  if (&connection == &peer.out) return EndOfOutgoing(peer, error);
  EndOfIncoming(peer, error == 0 ? kClosed : ErrorText(error));
}

// The connection has ended, and a message on it waits for an earlier one on the other connection,
// or for its receive. An epoll would report the end again and again.
void MeshPeers::EndHeld(MeshPeer& peer, MeshConnection& connection) {
  if (&connection == &peer.in) return EndOfIncoming(peer, kClosed);
  connection.outbox.Fail(Aborted(peer.Name() + " is gone: " + kClosed));
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  connection.watched = false;
}

// The last messages of a peer may be on another connection: those that have arrived are read first.
void MeshPeers::EndOfIncoming(MeshPeer& peer, const std::string& why) {
  if (std::exchange(peer.in_ended, true)) return;
  if (!peer.inbox.bye()) ReadLast(peer.rank);
  if (!peer.lost.ok()) return;
  const std::string& bye = peer.inbox.bye_text();
  if (!peer.inbox.bye()) {
    Lose(peer, Aborted(peer.Name() + " is gone: " + why));
  } else if (bye.empty()) {
    Lose(peer, Aborted(peer.Name() + " has left"));
  } else {
    owner_.GaveUp(bye);
  }
}

void MeshPeers::ReadLast(uint32_t rank) {
  for (MeshPeer* peer : table_.StripesOf(rank)) {
    uint64_t before = peer->moved - 1;
    while (std::exchange(before, peer->moved) != peer->moved) {
      if (!peer->in_ended) Read(*peer, peer->in, nullptr);
      Read(*peer, peer->out, nullptr);
    }
  }
}

// Its messages to us, including the last ones, may still be in flight: the other connection shows
// when they are over. A peer that has finished and left may have done so before that connection was
// accepted here.
void MeshPeers::EndOfOutgoing(MeshPeer& peer, int error) {
  const std::string why = error == 0 ? kClosed : ErrorText(error);
  const bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  peer.out.socket.Reset();
  if (peer.in_ended) return;
  const bool late = !peer.in.socket.valid() && owner_.Expects(peer.route());
  if (silent || (!peer.in.socket.valid() && !late)) return EndOfIncoming(peer, why);
  peer.out.outbox.Fail(Aborted(peer.Name() + " is gone: " + why));
  if (late) {
    late_.emplace_back(&peer, why);
  } else {
    Read(peer, peer.in, nullptr);
  }
}

void MeshPeers::LoseLate() {
  std::erase_if(late_, [this](const auto& entry) {
    const auto& [peer, why] = entry;
    if (owner_.Expects(peer->route())) return false;
    if (!peer->in.socket.valid()) EndOfIncoming(*peer, why);
    return true;
  });
}

std::vector<MeshSilence> MeshPeers::LoseSilent() {
  std::vector<MeshSilence> silences;
  for (const auto& [rank, stripes] : table_.Ranks()) {
    std::vector<ConnectionSigns> signs;
    for (const MeshPeer* peer : stripes) {
      for (const UniqueFd* socket : {&peer->in.socket, &peer->out.socket}) {
        if (socket->valid()) signs.push_back(SignsOf(socket->get()));
      }
    }
    const Duration silent = SilenceOf(signs);
    if (silent >= kReportedSilence) silences.push_back({rank, silent});
    if (silent < kSilenceLost) continue;
    Lose(*stripes[0], Aborted(Format("{} is gone: nothing has been heard of its host for {} s",
                                     stripes[0]->Name(), kSilenceLost / std::chrono::seconds(1))));
  }
  return silences;
}

void MeshPeers::Lose(MeshPeer& peer, const Status& why) {
  LoseStripe(peer, why);
  for (MeshPeer* other : table_.StripesOf(peer.rank)) {
    if (peer.LeftInPeace()) {
      const bool connected = other->in.socket.valid() || other->out.socket.valid();
      if (connected || owner_.Expects(other->route())) continue;
      other->inbox.NoteBye();
    }
    LoseStripe(*other, why);
  }
}

void MeshPeers::LoseStripe(MeshPeer& peer, const Status& why) {
  if (!peer.lost.ok()) return;
  peer.lost = why;
  if (!peer.LeftInPeace()) table_.NoteLoss();
  for (MeshConnection* connection : {&peer.in, &peer.out}) {
    connection->socket.Reset();
    connection->outbox.Fail(why);
  }
  peer.inbox.Fail(why);
}

void MeshPeers::LoseAll(const Status& why) {
  table_.ForEach([&](MeshPeer& peer) { LoseStripe(peer, why); });
  for (MeshTransfer* receive : std::exchange(table_.any(), {})) receive->Finish(why);
}

// A rank that never sent anything to a peer says goodbye over the peer's connection, whose end the
// peer would otherwise take for a death.
void MeshPeers::SendGoodbye(const std::string& why) {
  table_.ForEach([&](MeshPeer& peer) {
    MeshConnection& over = peer.out.socket.valid() ? peer.out : peer.in;
    if (!over.socket.valid()) return;
    over.outbox.PutBye(why);
    WriteBoth(peer);
  });
}

}  // namespace hvd
