#include "runtime/backends/hosts/coordination/coordination_link.h"

#include <cstddef>
#include <span>
#include <string_view>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kNegotiationTag = uint64_t{1} << 63;
// The first byte of every piece of a message.
constexpr char kMorePieces = 1, kLastPiece = 0;

Result<std::optional<CoordinationLink::Received>> Decode(uint32_t from, std::string_view bytes) {
  Result<Coordination> msg = DecodeCoordination(bytes);
  if (!msg.ok()) return Internal(Format("rank {} sent {}", from, msg.status().message()));
  return std::optional<CoordinationLink::Received>({from, std::move(*msg)});
}

}  // namespace

Status CoordinationLink::Send(uint32_t to, Coordination msg) {
  if (to != rank_) return Transmit(to, msg);
  local_.emplace_back(to, std::move(msg));
  return Status::Ok();
}

Status CoordinationLink::Transmit(uint32_t to, const Coordination& msg) {
  std::string bytes = EncodeCoordination(msg, std::string(1, kLastPiece));
  if (bytes.size() <= kMaxInterHostMessage) return TransmitPiece(to, std::move(bytes));
  constexpr size_t kRoom = kMaxInterHostMessage - 1;
  for (size_t at = 1;; at += kRoom) {
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

Result<InterHostMessage> CoordinationLink::Await(uint32_t from, TimePoint deadline) {
  return comm_.Await(from, kNegotiationTag, deadline);
}

Result<std::optional<CoordinationLink::Received>> CoordinationLink::Assemble(
    const InterHostMessage& piece) {
  if (piece.bytes.empty()) return Internal("an empty message between leaders");
  const std::string_view bytes = std::string_view(piece.bytes).substr(1);
  const auto before = partial_.find(piece.from);
  if (piece.bytes[0] == kMorePieces) {
    partial_[piece.from].append(bytes);
    return std::optional<Received>();
  }
  if (before == partial_.end()) return Decode(piece.from, bytes);
  before->second.append(bytes);
  auto whole = partial_.extract(before);
  return Decode(piece.from, whole.mapped());
}

std::optional<CoordinationLink::Received> CoordinationLink::TakeLocal() {
  if (local_.empty()) return std::nullopt;
  Received received = std::move(local_.front());
  local_.pop_front();
  return received;
}

}  // namespace hvd
