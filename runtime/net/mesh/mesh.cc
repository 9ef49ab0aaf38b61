#include "runtime/net/mesh/mesh.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kEventsAtOnce = 32;
// While somebody drives, the thread of the mesh looks this often whether it is needed again.
constexpr Duration kStandBack = std::chrono::milliseconds(2);
constexpr int kIdleLookMs = 500;

std::string NameOfRank(uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

// ---- handles

MeshHandle& MeshHandle::operator=(MeshHandle&& other) noexcept {
  GiveUp();
  mesh_ = other.mesh_;
  transfer_ = std::move(other.transfer_);
  return *this;
}

void MeshHandle::GiveUp() {
  if (transfer_ != nullptr) mesh_->GiveUp(transfer_.get());
  transfer_.reset();
}

// ---- open and close

Result<std::unique_ptr<Mesh>> Mesh::Open(MeshOptions options, KvStore& directory) {
  if (options.job_key.empty()) {
    return InvalidArgument("rank " + std::to_string(options.rank) +
                           " has no job key, and without it every program could join the job");
  }
  Result<MeshListener> listener = OpenMeshListener(options.listen, options.rank);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(options), directory, std::move(*listener)));
  if (Status started = mesh->Start(directory); !started.ok()) return started;
  return mesh;
}

Mesh::Mesh(MeshOptions options, KvStore& directory, MeshListener listener)
    : options_(std::move(options)),
      record_(listener.record),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      kick_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      connector_({{options_.job_key, options_.generation, options_.rank},
                  options_.connect_timeout,
                  options_.handshake_timeout,
                  options_.name ? options_.name : NameOfRank},
                 epoll_.get(), std::move(listener), *this),
      resolver_(directory, [this](uint32_t rank, Result<MeshRecord> record) {
        Resolved(rank, std::move(record));
      }) {}

Status Mesh::Start(KvStore& directory) {
  if (!epoll_.valid() || !kick_.valid()) {
    return SystemError("rank " + std::to_string(options_.rank) + " cannot watch connections",
                       errno);
  }
  epoll_event event{EPOLLIN, {.u64 = MeshEventKey(MeshSource::kKick, 0)}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, kick_.get(), &event);
  ForkGuard::Add(this);
  Status told = directory.Put(MeshKvKey(options_.rank), EncodeMeshRecord(record_));
  if (told.ok()) thread_ = std::thread([this] { RunThread(); });
  return told;
}

Mesh::~Mesh() {
  ForkGuard::Remove(this);
  resolver_.Stop();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    SendGoodbye("");
    quiet_.notify_all();
  }
  Kick();
  if (thread_.joinable()) thread_.join();
}

void Mesh::SendGoodbye(const std::string& why) {
  for (auto& [rank, peer] : peers_) {
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

void Mesh::Abort(const Status& why) {
  std::lock_guard lock(mutex_);
  AbortAll(why, "rank " + std::to_string(options_.rank) + " gave up: " + why.message());
}

void Mesh::AbortAll(const Status& why, const std::string& told) {
  if (!aborted_.ok()) return;
  aborted_ = why;
  SendGoodbye(told);
  connector_.Close();
  for (auto& [rank, peer] : peers_) Lose(*peer, why);
  for (auto& [tag, receives] : any_) {
    for (MeshTransfer* transfer : receives) transfer->Finish(why);
  }
  any_.clear();
  SendToAll();
}

void Mesh::Kick() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(kick_.get(), &one, sizeof one);
}

// ---- transfers

MeshHandle Mesh::Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->peer = peer;
  transfer->tag = tag;
  transfer->from = bytes.data();
  transfer->bytes = bytes.size();
  return Begin(std::move(transfer));
}

MeshHandle Mesh::Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->kind = MeshTransfer::Kind::kReceive;
  transfer->peer = peer;
  transfer->tag = tag;
  transfer->to = bytes.data();
  transfer->bytes = bytes.size();
  return Begin(std::move(transfer));
}

MeshHandle Mesh::ReceiveSmall(uint32_t peer, MeshTag tag) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->kind = MeshTransfer::Kind::kReceiveSmall;
  transfer->peer = peer;
  transfer->tag = tag;
  return Begin(std::move(transfer));
}

MeshHandle Mesh::Begin(std::unique_ptr<MeshTransfer> transfer) {
  std::lock_guard lock(mutex_);
  MeshTransfer* t = transfer.get();
  if (!aborted_.ok()) {
    t->Finish(aborted_);
  } else if (t->peer == options_.rank) {
    t->Finish(InvalidArgument("rank " + std::to_string(t->peer) + " does not talk to itself"));
  } else if (t->peer == kAnyMeshPeer) {
    BeginReceiveOfAny(t);
  } else if (t->kind != MeshTransfer::Kind::kSend) {
    BeginReceive(t);
  } else if (Peer& peer = PeerOf(t->peer); !peer.lost.ok()) {
    t->Finish(peer.lost);
  } else {
    peer.outbox.Send(t);
    Connect(peer);
    Write(peer);
  }
  SendToAll();
  return MeshHandle(this, std::move(transfer));
}

void Mesh::BeginReceive(MeshTransfer* transfer) {
  Peer& peer = PeerOf(transfer->peer);
  peer.inbox.Receive(transfer);
  if (!peer.lost.ok()) return peer.inbox.Fail(peer.lost);
  if (!peer.outbox.empty()) {  // a large message was given leave
    Connect(peer);
    Write(peer);
  }
  if (peer.reader.held()) Read(peer, nullptr);
}

void Mesh::BeginReceiveOfAny(MeshTransfer* transfer) {
  for (auto& [rank, peer] : peers_) {
    if (peer->inbox.TakeKept(transfer)) return;
  }
  any_[transfer->tag].push_back(transfer);
  for (auto& [rank, peer] : peers_) {
    if (peer->reader.held()) Read(*peer, nullptr);
  }
}

void Mesh::GiveUp(MeshTransfer* transfer) {
  std::lock_guard lock(mutex_);
  Forget(transfer);
  SendToAll();
}

void Mesh::Forget(MeshTransfer* transfer) {
  if (transfer->done) {
    // It came after the last look of the thread that gives up: the next caller gets it.
    const bool unseen = transfer->kind == MeshTransfer::Kind::kReceiveSmall;
    if (unseen && transfer->status.ok()) PeerOf(transfer->peer).inbox.TakeBack(transfer);
    return;
  }
  if (transfer->peer == kAnyMeshPeer) {
    auto at = any_.find(transfer->tag);
    std::erase(at->second, transfer);
    if (at->second.empty()) any_.erase(at);
    return;
  }
  Peer& peer = PeerOf(transfer->peer);
  bool clean = transfer->kind == MeshTransfer::Kind::kSend ? peer.outbox.Cancel(transfer)
                                                           : peer.inbox.Cancel(transfer);
  if (!clean) {
    Lose(peer, Aborted("the connection to " + NameOf(peer) +
                       " was closed because a message was given up halfway"));
  }
}

// ---- events

void Mesh::PollOnce(Lock& lock, int timeout_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  if (timeout_ms != 0) lock.unlock();
  int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  if (timeout_ms != 0) lock.lock();
  TimePoint now = SteadyNow();
  // The end of an outgoing connection last: what the peer said before it may be in another event.
  std::stable_partition(events.data(), events.data() + std::max(count, 0), [](const auto& event) {
    return SourceOf(event.data.u64) != MeshSource::kOutgoing;
  });
  for (int i = 0; i < count; ++i) HandleEvent(events[i], now);
  if (connector_.NextTick() <= now) connector_.Tick(now);
  if (!late_.empty()) LoseLate();
  if (next_silence_look_ <= now) LookForSilence(now);
}

void Mesh::HandleEvent(const epoll_event& event, TimePoint now) {
  uint64_t number = NumberOf(event.data.u64);
  switch (SourceOf(event.data.u64)) {
    case MeshSource::kKick: {
      uint64_t kicks = 0;
      [[maybe_unused]] ssize_t got = ::read(kick_.get(), &kicks, sizeof kicks);
      return;
    }
    case MeshSource::kListener: return connector_.HandleListener(number, now);
    case MeshSource::kNascent: return connector_.HandleNascent(number, now);
    case MeshSource::kIncoming: {
      Peer& peer = *FindPeer(number);
      bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
      if (peer.reader.held() && broken) return EndOfIncoming(peer, "it closed the connection");
      return Read(peer, nullptr);
    }
    case MeshSource::kOutgoing: return HandleOutgoing(*FindPeer(number), event.events);
  }
}

void Mesh::HandleOutgoing(Peer& peer, uint32_t events) {
  if (!peer.out.valid()) return;
  // The other side never writes here: anything readable is the end.
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) == 0) return Write(peer);
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(peer.out.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  EndOfOutgoing(peer, error);
}

// Serves the connections while nobody waits.
void Mesh::RunThread() {
  Lock lock(mutex_);
  uint64_t drives_seen = drives_;
  while (!stopping_) {
    if (driver_ != nullptr && drives_ == drives_seen) {  // for long: it says when it is over
      resting_ = true;
      quiet_.wait(lock, [this] { return !resting_ || stopping_; });
      continue;
    }
    if (driver_ != nullptr || drives_ != drives_seen) {
      drives_seen = drives_;
      quiet_.wait_for(lock, kStandBack);
      continue;
    }
    int timeout_ms = MillisecondsUntil(connector_.NextTick(), SteadyNow(), kIdleLookMs);
    lock.unlock();
    epoll_event event{};
    ::epoll_wait(epoll_.get(), &event, 1,
                 timeout_ms);  // looks only: a driver may have come meanwhile
    lock.lock();
    if (!stopping_ && driver_ == nullptr && drives_ == drives_seen) PollOnce(lock, 0);
  }
}

}  // namespace hvd
