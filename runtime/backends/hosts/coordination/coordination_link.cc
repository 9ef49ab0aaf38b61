#include "runtime/backends/hosts/coordination/coordination_link.h"

#include <cstddef>
#include <span>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kNegotiationTag = uint64_t{1} << 63;
// The first byte of every piece of a message.
constexpr char kMorePieces = 1, kLastPiece = 0;

}  // namespace

Status CoordinationLink::Send(uint32_t to, Coordination msg) {
  if (to != rank_) return Transmit(to, msg);
  local_.emplace_back(to, std::move(msg));
  return Status::Ok();
}

Status CoordinationLink::Transmit(uint32_t to, const Coordination& msg) {
  const std::string bytes = EncodeCoordination(msg);
  constexpr size_t kRoom = kMaxInterHostMessage - 1;
  for (size_t at = 0;; at += kRoom) {
    const bool last = bytes.size() - at <= kRoom;
    Status sent = TransmitPiece(
        to, std::string(1, last ? kLastPiece : kMorePieces) + bytes.substr(at, kRoom));
    if (!sent.ok() || last) return sent;
  }
}

Status CoordinationLink::TransmitPiece(uint32_t to, std::string piece) {
  if (InterHostSteps* steps = comm_.steps())
    return steps->Post(to, kNegotiationTag, std::move(piece));
  return comm_.Send(to, kNegotiationTag, std::as_bytes(std::span(piece)),
                    After(SteadyNow(), idle_limit_));
}

Status CoordinationLink::Flush(TimePoint deadline) {
  InterHostSteps* steps = comm_.steps();
  return steps == nullptr ? Status::Ok() : steps->Flush(deadline);
}

Result<InterHostMessage> CoordinationLink::Receive(uint32_t from, TimePoint deadline) {
  return comm_.Receive(from, kNegotiationTag, deadline);
}

Result<std::optional<CoordinationLink::Received>> CoordinationLink::Assemble(
    const InterHostMessage& piece) {
  if (piece.bytes.empty()) return Internal("an empty message between leaders");
  std::string& whole = partial_[piece.from];
  whole.append(piece.bytes, 1);
  if (piece.bytes[0] == kMorePieces) return std::optional<Received>();
  Result<Coordination> msg = DecodeCoordination(whole);
  partial_.erase(piece.from);
  if (!msg.ok()) {
    return Internal(Format("rank {} sent {}", piece.from, msg.status().message()));
  }
  return std::optional<Received>({piece.from, std::move(*msg)});
}

std::optional<CoordinationLink::Received> CoordinationLink::TakeLocal() {
  if (local_.empty()) return std::nullopt;
  Received received = std::move(local_.front());
  local_.pop_front();
  return received;
}

}  // namespace hvd
