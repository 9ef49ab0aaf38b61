#include "runtime/backends/hosts/coordination/coordination_link.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kNegotiationTag = uint64_t{1} << 63;
// The last byte of every piece of a message.
constexpr char kMorePieces = 1, kLastPiece = 0;

Result<std::optional<CoordinationLink::Received>> Decode(uint32_t from, std::string bytes) {
  Result<Coordination> msg = DecodeCoordination(std::move(bytes));
  if (!msg.ok()) return Internal(Format("rank {} sent {}", from, msg.status().message()));
  return std::optional<CoordinationLink::Received>(std::in_place, from, std::move(*msg));
}

}  // namespace

Status CoordinationLink::Send(uint32_t to, Coordination&& msg) {
  if (to != rank_) return Transmit(to, std::move(msg));
  local_.emplace_back(to, std::move(msg));
  return Status::Ok();
}

Status CoordinationLink::Transmit(uint32_t to, Coordination&& msg) {
  constexpr size_t kRoom = kMaxInterHostMessage - 1;
  MessageBytes bytes = EncodeCoordination(std::move(msg));
  if (bytes.size() <= kRoom) return TransmitPiece(to, std::move(bytes), kLastPiece);
  for (std::string_view rest = bytes.view();;) {
    const std::string_view piece = rest.substr(0, kRoom);
    rest.remove_prefix(piece.size());
    const char mark = rest.empty() ? kLastPiece : kMorePieces;
    Status sent = TransmitPiece(to, std::string(piece), mark);
    if (!sent.ok() || rest.empty()) return sent;
  }
}

Status CoordinationLink::TransmitPiece(uint32_t to, MessageBytes piece, char mark) {
  piece.Append({&mark, 1});
  if (InterHostSteps* steps = comm_.steps())
    return steps->Post(to, kNegotiationTag, std::move(piece));
  return comm_.Send(to, kNegotiationTag, std::as_bytes(std::span(piece.view())),
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
    InterHostMessage piece) {
  if (piece.bytes.empty()) return Internal("an empty message between leaders");
  const char mark = piece.bytes.back();
  piece.bytes.pop_back();
  const auto before = partial_.find(piece.from);
  if (mark == kMorePieces) {
    partial_[piece.from].append(piece.bytes);
    return std::optional<Received>();
  }
  if (before == partial_.end()) return Decode(piece.from, std::move(piece.bytes));
  before->second.append(piece.bytes);
  auto whole = partial_.extract(before);
  return Decode(piece.from, std::move(whole.mapped()));
}

std::optional<CoordinationLink::Received> CoordinationLink::PopLocal() {
  if (local_.empty()) return std::nullopt;
  std::optional<Received> received(std::move(local_.front()));
  local_.pop_front();
  return received;
}

}  // namespace hvd
