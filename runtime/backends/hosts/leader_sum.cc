#include "runtime/backends/hosts/leader_sum.h"

#include <algorithm>
#include <utility>

#include "runtime/backends/shm/gather_plan.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

// The most that the coordinator sends to a leader in one such answer: larger ones would be copied
// too often.
constexpr size_t kMostOffered = 4 << 10;
// Between two hosts it is sent while the other's report arrives (early_offer.h), in one piece.
constexpr size_t kMostOfferedToOne = 64 << 10;
// From this many bytes on, fused tensors are copied while they are in flight.
constexpr size_t kCopiedByPart = 256 << 10;

size_t OfferedBytes(const LeaderTensor& part) {
  const DType dtype = part.straight ? part.call.dtype : InterHostType(part.call);
  return part.call.count * SizeOf(dtype);
}

}  // namespace

MessageBytes SumToOffer(const LeaderOp& op) {
  const ReadyMessage& ready = op.ready;
  const bool says_more = !ready.note.empty() || ready.participants != 0;
  if (!ready.failure.ok() || says_more || op.parts.empty()) return {};
  const size_t others = op.hosts->parts.size() - 1;
  const size_t most = others <= 1 ? kMostOfferedToOne : kMostOffered / others;
  size_t bytes = 0;
  for (const auto& part : op.parts) {
    if (!TravelTogether(op.parts[0]->call, part->call)) return {};
    if (!part->straight && !part->local_sum.IsSmall()) return {};  // it may not have ended
    bytes += OfferedBytes(*part);
    if (bytes > most) return {};
  }
  MessageBytes sum(kRoomForReport, bytes + kRoomForReport);
  for (const auto& part : op.parts) {
    if (part->call.count == 0) continue;
    sum.Append({static_cast<const char*>(part->From()), OfferedBytes(*part)});
  }
  return sum;
}

uint32_t DivisorFor(const CollectiveCall& call, const LeaderItem& item) {
  return DivisorOf(call.op, static_cast<uint32_t>(item.op->set_size), item.entry->participants);
}

// The rank that uses the result applies the scales (FinishSum), except with one rank per host: then
// the sum goes from input to output in its final form.
LeaderSum::LeaderSum(LeaderItems items) : items_(items) {
  const CollectiveCall& call = items[0].part->call;
  spec_ = ReduceSpec{InterHostType(call), ArithmeticOf(call.op)};
  if (items[0].part->straight) spec_ = SpecOf(call, DivisorFor(call, items[0]));
  for (const LeaderItem& item : items) count_ += item.part->call.count;
}

bool LeaderSum::Help() {
  for (const LeaderItem& item : items_) {
    if (!item.part->local_sum.Help()) return false;
    item.part->result_status->participants = item.entry->participants;
  }
  return true;
}

SumCopies* LeaderSum::Pack(const Room& room, bool by_part) {
  if (items_.size() == 1) {
    input_ = items_[0].part->From();
    output_ = items_[0].part->To();
    return nullptr;
  }
  packed_ = room(bytes());
  input_ = output_ = packed_;
  by_part_ = by_part && bytes() >= kCopiedByPart;
  if (by_part_) {
    for (size_t begin = 0; const LeaderItem& item : items_) {
      begins_.push_back(begin);
      begin += item.part->call.count;
    }
    return this;
  }
  NoteActivity(items_, {.bytes = bytes(), .activity = TraceActivity::kCopyIn});
  std::byte* packed = packed_;
  for (const LeaderItem& item : items_) {
    const size_t size = item.part->call.count * SizeOf(spec_.dtype);
    if (size != 0) CopyRange(std::exchange(packed, packed + size), item.part->From(), size);
  }
  return nullptr;
}

Status LeaderSum::AddOffered(std::span<const MessageBytes> sums, size_t own) {
  std::vector<const void*> parts(sums.size(), input_);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (i == own) continue;
    if (sums[i].size() != bytes()) return Internal("a part of a sum of a wrong length");
    parts[i] = sums[i].view().data();
  }
  ReduceRange(spec_, parts, {&output_, 1}, 0, count_);
  return Status::Ok();
}

// The bytes of each tensor among these elements: its number, their offset in it and in all of them
// together, and how many they are.
template <typename Visitor>
void LeaderSum::ForTensors(size_t first, size_t count, Visitor visit) const {
  const size_t element = SizeOf(spec_.dtype), end = first + count;
  auto at = std::upper_bound(begins_.begin(), begins_.end(), first);
  for (auto n = static_cast<size_t>(at - begins_.begin()) - 1; first < end; ++n) {
    const size_t next = std::min(end, begins_[n] + items_[n].part->call.count);
    if (next > first) {
      visit(*items_[n].part, (first - begins_[n]) * element, first * element,
            (next - first) * element);
      first = next;
    }
  }
}

void LeaderSum::Fill(size_t first, size_t count) {
  ForTensors(first, count, [this](LeaderTensor& part, size_t from, size_t to, size_t bytes) {
    CopyRange(packed_ + to, static_cast<const std::byte*>(part.From()) + from, bytes);
  });
}

void LeaderSum::Deliver(size_t first, size_t count) {
  ForTensors(first, count, [this](LeaderTensor& part, size_t to, size_t from, size_t bytes) {
    CopyRange(static_cast<std::byte*>(part.To()) + to, packed_ + from, bytes);
  });
}

void LeaderSum::HandOut() {
  if (items_.size() == 1 || by_part_) return;
  NoteActivity(items_, {.bytes = bytes(), .activity = TraceActivity::kCopyOut});
  const auto* packed = static_cast<const std::byte*>(output_);
  for (const LeaderItem& item : items_) {
    const size_t size = item.part->call.count * SizeOf(spec_.dtype);
    if (size != 0) CopyRange(item.part->To(), std::exchange(packed, packed + size), size);
  }
}

}  // namespace hvd
