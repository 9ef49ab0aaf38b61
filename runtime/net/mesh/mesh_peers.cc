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

// One turn at one connection; then others are looked at.
constexpr size_t kMostReadAtOnce = 4 << 20;
constexpr size_t kPiecesAtOnce = 32;

std::string ErrorText(int error) { return std::generic_category().message(error); }

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

MeshPeer& MeshPeers::Of(MeshRoute route) {
  if (MeshPeer* known = Find(route)) return *known;
  auto peer = std::make_unique<MeshPeer>(route, most_kept_, any_);
  // A peer that is gone is gone on every stripe.
  for (const MeshPeer* other : StripesOf(route.rank)) {
    if (other->lost.ok()) continue;
    peer->lost = other->lost;
    if (other->LeftInPeace()) peer->inbox.NoteBye();
  }
  stripes_ = std::max(stripes_, route.stripe + 1);
  return *(peers_[NumberOfRoute(route)] = std::move(peer));
}

MeshPeer* MeshPeers::Find(MeshRoute route) {
  auto at = peers_.find(NumberOfRoute(route));
  return at == peers_.end() ? nullptr : at->second.get();
}

MeshPeer* MeshPeers::FindOnly() {
  if (peers_.empty()) return nullptr;
  const uint32_t rank = peers_.begin()->second->rank;
  const auto is_other = [rank](const auto& item) { return item.second->rank != rank; };
  return std::ranges::any_of(peers_, is_other) ? nullptr : Find({rank, 0});
}

std::vector<MeshPeer*> MeshPeers::StripesOf(uint32_t rank) {
  std::vector<MeshPeer*> found;
  for (uint32_t stripe = 0; stripe < stripes_; ++stripe) {
    if (MeshPeer* peer = Find({rank, stripe})) found.push_back(peer);
  }
  return found;
}

// The stripes of each rank.
std::map<uint32_t, std::vector<MeshPeer*>> MeshPeers::Ranks() const {
  std::map<uint32_t, std::vector<MeshPeer*>> ranks;
  for (const auto& [number, peer] : peers_) ranks[peer->rank].push_back(peer.get());
  return ranks;
}

std::string MeshPeer::Name() const {
  return Format("rank {}{}", rank, address.empty() ? "" : " at " + address);
}

// ---- transfers

void MeshPeers::Begin(std::span<MeshTransfer* const> transfers) {
  for (MeshTransfer* transfer : transfers) {
    if (!transfer->done) Queue(transfer);
  }
  for (const MeshTransfer* transfer : transfers) {
    MeshPeer* peer = Find({transfer->peer, transfer->stripe});
    if (peer == nullptr || !std::exchange(peer->queued, false)) continue;
    if (!peer->outbox.empty()) {
      Dial(*peer);
      Write(*peer);
    }
    if (peer->reader.held()) Read(*peer, nullptr);
  }
}

void MeshPeers::Queue(MeshTransfer* transfer) {
  if (transfer->peer == kAnyMeshPeer) return BeginReceiveOfAny(transfer);
  MeshPeer& peer = Of({transfer->peer, transfer->stripe});
  peer.queued = peer.lost.ok();
  if (transfer->kind != MeshTransfer::Kind::kSend) {
    peer.inbox.Receive(transfer);  // which may give leave for a large message
    if (!peer.lost.ok()) peer.inbox.Fail(peer.lost);
  } else if (peer.lost.ok()) {
    peer.outbox.Send(transfer);
    Dial(peer);  // also for a message that has no leave yet
  } else {
    transfer->Finish(peer.lost);
  }
}

void MeshPeers::BeginReceiveOfAny(MeshTransfer* transfer) {
  for (auto& [number, peer] : peers_) {
    if (peer->inbox.TakeKept(transfer)) return;
  }
  any_.push_back(transfer);
  for (auto& [number, peer] : peers_) {
    if (peer->reader.held()) Read(*peer, nullptr);
  }
}

void MeshPeers::GiveUp(MeshTransfer* transfer) {
  if (transfer->done) return;
  if (transfer->peer == kAnyMeshPeer) {
    std::erase(any_, transfer);
    return;
  }
  MeshPeer& peer = Of({transfer->peer, transfer->stripe});
  bool clean = transfer->kind == MeshTransfer::Kind::kSend ? peer.outbox.Cancel(transfer)
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
  MeshPeer& peer = Of({rank, greeting.stripe});
  UniqueFd& place = incoming ? peer.in : peer.out;
  if (!peer.lost.ok() || place.valid()) return;
  place = std::move(socket);
  if (peer.address.empty() || !incoming) peer.address = greeting.address;
  MeshSource source = incoming ? MeshSource::kIncoming : MeshSource::kOutgoing;
  uint32_t& events = incoming ? peer.in_events : peer.out_events;
  events = EPOLLIN | EPOLLRDHUP;
  epoll_event event{events, {.u64 = MeshEventKey(source, NumberOfRoute(peer.route()))}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, place.get(), &event);
  if (incoming) return Read(peer, nullptr);
  peer.dial = MeshPeer::Dial::kDone;
  Write(peer);
}

void MeshPeers::HandleIncoming(MeshRoute route, uint32_t events) {
  MeshPeer& peer = Of(route);
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (peer.reader.held() && broken) return EndOfIncoming(peer, "it closed the connection");
  Read(peer, nullptr);
}

void MeshPeers::HandleOutgoing(MeshRoute route, uint32_t events) {
  MeshPeer& peer = Of(route);
  if (!peer.out.valid()) return;
  // The other side never writes here: anything readable is the end.
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) == 0) return Write(peer);
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(peer.out.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  EndOfOutgoing(peer, error);
}

// Looks for what can be done on both connections, and for nothing else.
void MeshPeers::Arm(MeshPeer& peer) {
  uint32_t in = peer.reader.held() ? 0 : EPOLLIN | EPOLLRDHUP;
  if (peer.in.valid() && in != peer.in_events) {
    epoll_event event{in,
                      {.u64 = MeshEventKey(MeshSource::kIncoming, NumberOfRoute(peer.route()))}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.in.get(), &event);
    peer.in_events = in;
  }
  uint32_t out = EPOLLIN | EPOLLRDHUP;
  if (!peer.outbox.empty()) out |= EPOLLOUT;
  if (peer.out.valid() && out != peer.out_events) {
    epoll_event event{out,
                      {.u64 = MeshEventKey(MeshSource::kOutgoing, NumberOfRoute(peer.route()))}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.out.get(), &event);
    peer.out_events = out;
  }
}

// ---- moving bytes

void MeshPeers::Read(MeshPeer& peer, const MeshTransfer* until) {
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
    if (got < 0) return EndOfIncoming(peer, ErrorText(errno));
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

void MeshPeers::Write(MeshPeer& peer) {
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

void MeshPeers::CloseInForkedChild() {
  for (auto& [number, peer] : peers_) {
    peer->in.Reset();
    peer->out.Reset();
  }
}

// ---- losing a peer

// The last words of a peer may be on another stripe: those that have come are read first.
void MeshPeers::EndOfIncoming(MeshPeer& peer, const std::string& why) {
  peer.ending = true;
  if (!peer.inbox.bye()) {
    for (MeshPeer* other : StripesOf(peer.rank)) {
      uint64_t before = other->moved - 1;
      while (!other->ending && std::exchange(before, other->moved) != other->moved) {
        Read(*other, nullptr);
      }
    }
  }
  const std::string& bye = peer.inbox.bye_text();
  if (!peer.inbox.bye()) {
    Lose(peer, Aborted(peer.Name() + " is gone: " + why));
  } else if (bye.empty()) {
    Lose(peer, Aborted(peer.Name() + " has left"));
  } else {
    owner_.GaveUp(bye);
  }
}

// Its messages to us may still be under way, and its last words: the other connection says when
// they are over. A peer that has finished and left may have done so before that connection was
// taken here.
void MeshPeers::EndOfOutgoing(MeshPeer& peer, int error) {
  std::string why = error == 0 ? "it closed the connection" : ErrorText(error);
  bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  if (ByeCameBack(peer.out)) peer.inbox.NoteBye();
  peer.out.Reset();
  const bool late = !peer.in.valid() && owner_.Expects(peer.route());
  if (silent || (!peer.in.valid() && !late)) return EndOfIncoming(peer, why);
  peer.outbox.Fail(Aborted(peer.Name() + " is gone: " + why));
  if (late) {
    late_.emplace_back(&peer, why);
  } else {
    Read(peer, nullptr);
  }
}

void MeshPeers::LoseLate() {
  std::erase_if(late_, [this](const auto& entry) {
    const auto& [peer, why] = entry;
    if (owner_.Expects(peer->route())) return false;
    if (!peer->in.valid()) EndOfIncoming(*peer, why);
    return true;
  });
}

std::vector<MeshSilence> MeshPeers::LoseSilent() {
  std::vector<MeshSilence> silences;
  for (const auto& [rank, stripes] : Ranks()) {
    std::vector<ConnectionSigns> signs;
    for (const MeshPeer* peer : stripes) {
      for (const UniqueFd* socket : {&peer->in, &peer->out}) {
        if (socket->valid()) signs.push_back(SignsOf(socket->get()));
      }
    }
    const Duration silent = SilenceOf(signs);
    if (silent >= kSilenceTold) silences.push_back({rank, silent});
    if (silent < kSilenceLost) continue;
    Lose(*stripes[0], Aborted(Format("{} is gone: nothing has been heard of its host for {} s",
                                     stripes[0]->Name(), kSilenceLost / std::chrono::seconds(1))));
  }
  return silences;
}

std::vector<MeshLink> MeshPeers::Links() const {
  std::vector<MeshLink> links;
  for (const auto& [rank, stripes] : Ranks()) {
    MeshLink all{.rank = rank};
    bool connected = false;
    for (const MeshPeer* peer : stripes) {
      if (!peer->out.valid()) continue;
      connected = true;
      const MeshLink one = LinkOver(peer->out.get(), rank);
      all.bytes += one.bytes;
      all.busy_us = std::max(all.busy_us, one.busy_us);  // they are busy together
      all.round_trip_us = std::max(all.round_trip_us, one.round_trip_us);
    }
    if (connected) links.push_back(all);
  }
  return links;
}

void MeshPeers::Lose(MeshPeer& peer, const Status& why) {
  LoseStripe(peer, why);
  for (MeshPeer* other : StripesOf(peer.rank)) {
    if (peer.LeftInPeace()) {
      const bool connected = other->in.valid() || other->out.valid();
      if (connected || owner_.Expects(other->route())) continue;
      other->inbox.NoteBye();
    }
    LoseStripe(*other, why);
  }
}

void MeshPeers::LoseStripe(MeshPeer& peer, const Status& why) {
  if (!peer.lost.ok()) return;
  peer.lost = why;
  if (!peer.LeftInPeace()) ++losses_;
  peer.in.Reset();
  peer.out.Reset();
  peer.outbox.Fail(why);
  peer.inbox.Fail(why);
}

void MeshPeers::LoseAll(const Status& why) {
  for (auto& [number, peer] : peers_) LoseStripe(*peer, why);
  for (MeshTransfer* receive : any_) receive->Finish(why);
  any_.clear();
}

void MeshPeers::SendGoodbye(const std::string& why) {
  for (auto& [number, peer] : peers_) {
    if (peer->out.valid()) {
      peer->outbox.PutBye(why);
      Write(*peer);
    } else if (peer->in.valid() && why.empty()) {
      // This rank never sent anything: without this, a peer that sent to us would take our end for
      // a death.
      const MeshHeader bye = EncodeMeshHeader({MeshFrameType::kBye, 0, {}});
      (void)::send(peer->in.get(), bye.data(), bye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
}

// ---- how it goes

Status MeshPeers::LossIn(std::span<const uint32_t> group) {
  if (losses_ == 0) return Status::Ok();
  for (uint32_t rank : group) {
    for (const MeshPeer* peer : StripesOf(rank)) {
      if (!peer->lost.ok() && !peer->LeftInPeace()) return peer->lost;
    }
  }
  return Status::Ok();
}

uint64_t MeshPeers::MovedWith(std::span<const uint32_t> group) {
  uint64_t moved = 0;
  for (uint32_t rank : group) {
    for (const MeshPeer* peer : StripesOf(rank)) moved += peer->moved;
  }
  return moved;
}

}  // namespace hvd
