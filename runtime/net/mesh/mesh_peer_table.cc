#include "runtime/net/mesh/mesh_peer_table.h"

#include <algorithm>
#include <utility>

namespace hvd {

MeshPeer& MeshPeerTable::Of(MeshRoute route) {
  if (MeshPeer* known = Find(route)) return *known;
  auto peer = std::make_unique<MeshPeer>(options_, route, any_);
  // A peer that is gone is gone on every stripe.
  for (const MeshPeer* other : StripesOf(route.rank)) {
    if (other->lost.ok()) continue;
    peer->lost = other->lost;
    if (other->LeftInPeace()) peer->inbox.NoteBye();
  }
  stripes_ = std::max(stripes_, route.stripe + 1);
  return *(peers_[NumberOfRoute(route)] = std::move(peer));
}

MeshPeer* MeshPeerTable::Find(MeshRoute route) {
  auto at = peers_.find(NumberOfRoute(route));
  return at == peers_.end() ? nullptr : at->second.get();
}

MeshPeer* MeshPeerTable::FindOnly() {
  if (peers_.empty()) return nullptr;
  const uint32_t rank = peers_.begin()->second->rank;
  const auto is_other = [rank](const auto& item) { return item.second->rank != rank; };
  return std::ranges::any_of(peers_, is_other) ? nullptr : Find({rank, 0});
}

std::vector<MeshPeer*> MeshPeerTable::StripesOf(uint32_t rank) {
  std::vector<MeshPeer*> found;
  for (uint32_t stripe = 0; stripe < stripes_; ++stripe) {
    if (MeshPeer* peer = Find({rank, stripe})) found.push_back(peer);
  }
  return found;
}

std::map<uint32_t, std::vector<MeshPeer*>> MeshPeerTable::Ranks() const {
  std::map<uint32_t, std::vector<MeshPeer*>> ranks;
  for (const auto& [number, peer] : peers_) ranks[peer->rank].push_back(peer.get());
  return ranks;
}

void MeshPeerTable::CloseInForkedChild() {
  for (auto& [number, peer] : peers_) {
    peer->in.socket.Reset();
    peer->out.socket.Reset();
  }
}

void MeshPeerTable::Acknowledge() {
  if (!std::exchange(owes_, false)) return;
  for (auto& [number, peer] : peers_) {
    if (std::exchange(peer->owes, false) && peer->in.socket.valid())
      AcknowledgeNow(peer->in.socket.get());
  }
}

std::vector<MeshLink> MeshPeerTable::Links() const {
  std::vector<MeshLink> links;
  for (const auto& [rank, stripes] : Ranks()) {
    MeshLink all{.rank = rank};
    bool connected = false;
    for (const MeshPeer* peer : stripes) {
      if (!peer->out.socket.valid()) continue;
      connected = true;
      const MeshLink one = LinkOver(peer->out.socket.get(), rank);
      all.bytes += one.bytes;
      all.busy_us = std::max(all.busy_us, one.busy_us);  // they are busy together
      all.round_trip_us = std::max(all.round_trip_us, one.round_trip_us);
    }
    if (connected) links.push_back(all);
  }
  return links;
}

Status MeshPeerTable::LossIn(std::span<const uint32_t> group) {
  if (losses_ == 0) return Status::Ok();
  for (uint32_t rank : group) {
    for (const MeshPeer* peer : StripesOf(rank)) {
      if (!peer->lost.ok() && !peer->LeftInPeace()) return peer->lost;
    }
  }
  return Status::Ok();
}

uint64_t MeshPeerTable::MovedWith(std::span<const uint32_t> group) {
  uint64_t moved = 0;
  for (uint32_t rank : group) {
    for (const MeshPeer* peer : StripesOf(rank)) moved += peer->moved;
  }
  return moved;
}

}  // namespace hvd
