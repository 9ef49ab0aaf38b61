#include "runtime/backends/hosts/coordination/coordination_messages.h"

#include <utility>

#include "runtime/net/fields.h"

namespace hvd {
namespace {

constexpr size_t kUsualBytes = 256;

// So that most messages allocate once.
size_t LikelyBytes(const Coordination& msg) {
  size_t bytes = kUsualBytes;
  if (const auto* sums = std::get_if<SumsMessage>(&msg)) {
    for (const MessageBytes& sum : sums->run.sums) bytes += sum.size();
  }
  return bytes;
}

// Null: no such message.
MessageBytes* TailOf(Coordination& msg) {
  if (auto* offer = std::get_if<OfferMessage>(&msg)) return &offer->ready.sum;
  if (auto* early = std::get_if<EarlyOfferMessage>(&msg)) return &early->ready.sum;
  return nullptr;
}

}  // namespace

void Fields(auto& f, MaybeConst<Status> auto& status) {
  auto code = static_cast<uint8_t>(status.code());
  std::string message = status.message();
  f(code, message);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(status)>>) {
    const bool known = code <= static_cast<uint8_t>(Code::kInternal);
    status = {known ? static_cast<Code>(code) : Code::kInternal, std::move(message)};
  }
}
void Fields(auto& f, MaybeConst<PartInfo> auto& part) { f(part.bytes, part.extents); }
void Fields(auto& f, MaybeConst<RunEntry> auto& entry) {
  f(entry.ticket, entry.participants, entry.extents);
}

void Fields(auto& f, MaybeConst<ReadyMessage> auto& m) {
  f(m.ticket, m.domain, m.ranks, m.collective, m.name, m.detail, m.joined, m.fusion_key, m.parts,
    m.failure);
}
void Fields(auto& f, MaybeConst<WithdrawMessage> auto& m) { f(m.ticket, m.why); }
void Fields(auto& f, MaybeConst<JoinMessage> auto& m) { f(m.ticket, m.last_here); }
void Fields(auto& f, MaybeConst<LeaveMessage> auto& m) { f(m.rank); }
void Fields(auto& f, MaybeConst<DoneMessage> auto& m) { f(m.number); }
void Fields(auto& f, MaybeConst<SumCut> auto& cut) {
  f(cut.piece_kib, cut.pieces, cut.stripes, cut.eager_kib);
}
void Fields(auto& f, MaybeConst<RunMessage> auto& m) { f(m.number, m.leaders, m.entries, m.cut); }
void Fields(auto& f, MaybeConst<EndMessage> auto& m) { f(m.ticket, m.last_joined, m.status); }
void Fields(auto& f, MaybeConst<AbortNotice> auto& m) { f(m.why); }
void Fields(auto& f, MaybeConst<WaitMessage> auto& m) { f(m.ticket, m.ranks); }
void Fields(auto& f, MaybeConst<AgreeMessage> auto& m) {
  f(m.ready, m.ready.note, m.ready.participants);
}
void Fields(auto& f, MaybeConst<TurnMessage> auto& m) { f(m.run, m.run.turns, m.run.notes); }
void Fields(auto& f, MaybeConst<OfferMessage> auto& m) {
  f(m.ready);
  f.Tail(m.ready.sum);
}
void Fields(auto& f, MaybeConst<SumsMessage> auto& m) { f(m.run, m.run.sums); }
void Fields(auto& f, MaybeConst<EarlyOfferMessage> auto& m) {
  f(m.ready);
  f.Tail(m.ready.sum);
}
void Fields(auto& f, MaybeConst<RecallMessage> auto& m) { f(m.ticket); }
void Fields(auto& f, MaybeConst<RecalledMessage> auto& m) { f(m.ticket); }
void Fields(auto& f, MaybeConst<AgreedPart> auto& p) {
  auto& a = p.agreement;
  f(a.place, a.batch_size, a.participants, a.extents, a.notes, p.turns);
}

MessageBytes EncodeCoordination(Coordination msg) {
  std::string begin;
  begin.reserve(LikelyBytes(msg));
  std::string head = EncodeMessage(msg, std::move(begin));
  MessageBytes* tail = TailOf(msg);
  if (tail == nullptr) return head;
  tail->Push(head);
  return std::move(*tail);
}

Result<Coordination> DecodeCoordination(MessageBytes bytes) {
  return DecodeWithTail<Coordination>(std::move(bytes), "coordination message");
}

std::string EncodeAgreed(const AgreedPart& part) { return EncodeFields(part); }

Result<AgreedPart> DecodeAgreed(std::string_view bytes) {
  std::optional<AgreedPart> part = DecodeFields<AgreedPart>(bytes);
  if (!part) return Internal("an agreement of a wrong length");
  return std::move(*part);
}

}  // namespace hvd
