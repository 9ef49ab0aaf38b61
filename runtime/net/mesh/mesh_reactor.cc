#include "runtime/net/mesh/mesh_reactor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {

MeshReactor::MeshReactor(MeshReactorOptions options, MeshListener listener, MeshSigns& signs)
    : rank_(options.connector.identity.rank),
      kick_(options.kick),
      resolve_(std::move(options.resolve)),
      record_(listener.record),
      signs_(signs),
      peers_({rank_, options.most_kept_bytes, options.proves_routes}, options.epoll, *this),
      connector_(std::move(options.connector), options.epoll, std::move(listener), *this) {
  epoll_event event{EPOLLIN, {.u64 = MeshEventKey(MeshSource::kKick, 0)}};
  ::epoll_ctl(options.epoll, EPOLL_CTL_ADD, kick_, &event);
}

// ---- transfers

void MeshReactor::Begin(std::span<MeshTransfer* const> transfers) {
  for (MeshTransfer* transfer : transfers) {
    if (!aborted_.ok()) {
      transfer->Finish(aborted_);
    } else if (transfer->peer == rank_) {
      transfer->Finish(InvalidArgument(Format("rank {} does not talk to itself", rank_)));
    }
  }
  peers_.Begin(transfers);
}

void MeshReactor::ReadFor(const MeshTransfer& transfer) {
  if (transfer.kind == MeshTransfer::Kind::kSend) return;
  MeshPeer* peer = transfer.peer == kAnyMeshPeer
                       ? peers_.table().FindOnly()
                       : peers_.table().Find({transfer.peer, transfer.stripe});
  if (peer != nullptr) peers_.ReadFor(*peer, transfer);
}

// ---- events

void MeshReactor::Handle(std::span<epoll_event> events, TimePoint now) {
  // The end of an outgoing connection is handled last: the peer's goodbye may be in another event.
  for (bool outgoing : {false, true}) {
    for (const epoll_event& event : events) {
      if ((SourceOf(event.data.u64) == MeshSource::kOutgoing) == outgoing) HandleOne(event, now);
    }
  }
  if (connector_.NextTick() <= now) connector_.Tick(now);
  peers_.LoseLate();
  if (next_silence_look_ > now) return;
  next_silence_look_ = now + kSilenceLook;
  signs_.Put(peers_.LoseSilent(), peers_.table().Links());
}

void MeshReactor::HandleOne(const epoll_event& event, TimePoint now) {
  const uint64_t number = NumberOf(event.data.u64);
  switch (SourceOf(event.data.u64)) {
    case MeshSource::kKick: {
      uint64_t kicks = 0;
      [[maybe_unused]] ssize_t got = ::read(kick_, &kicks, sizeof kicks);
      return;
    }
    case MeshSource::kListener: return connector_.HandleListener(number, now);
    case MeshSource::kNascent: return connector_.HandleNascent(number, now);
    case MeshSource::kIncoming: return peers_.HandleIncoming(RouteOf(number), event.events);
    case MeshSource::kOutgoing: return peers_.HandleOutgoing(RouteOf(number), event.events);
  }
}

TimePoint MeshReactor::NextTick() const {
  return std::min(connector_.NextTick(), next_silence_look_);
}

// One lookup for all stripes that are dialled at once.
void MeshReactor::Dial(MeshRoute to) {
  std::vector<MeshRoute>& asked = asked_[to.rank];
  asked.push_back(to);
  if (asked.size() == 1) resolve_(to.rank);
}

void MeshReactor::Resolved(uint32_t rank, const Result<MeshRecord>& record, TimePoint now) {
  const std::vector<MeshRoute> routes = std::exchange(asked_[rank], {});
  if (!aborted_.ok()) return;
  if (!record.ok()) return Unreachable(rank, record.status());
  for (MeshRoute to : routes) {
    if (peers_.table().Of(to).lost.ok())
      connector_.Dial(to, Reachable(*record, record_.machine), now);
  }
}

void MeshReactor::Connected(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting) {
  peers_.Attach(rank, std::move(socket), greeting);
}

void MeshReactor::Unreachable(uint32_t rank, Status why) {
  peers_.Lose(peers_.table().Of({rank}),
              why.code() == Code::kAborted ? why : Aborted(why.message()));
}

// ---- the end

void MeshReactor::Abort(const Status& why, const std::string& goodbye) {
  if (!aborted_.ok()) return;
  aborted_ = why;
  peers_.SendGoodbye(goodbye);
  connector_.Close();
  peers_.LoseAll(why);
}

void MeshReactor::CloseInForkedChild() {
  peers_.table().CloseInForkedChild();
  connector_.Close();
}

std::string MeshReactor::AddressOf(uint32_t rank) {
  std::string address = peers_.table().Of({rank}).address;
  address = address.substr(0, address.rfind(':'));
  return address.starts_with('[') ? address.substr(1, address.size() - 2) : address;
}

}  // namespace hvd
