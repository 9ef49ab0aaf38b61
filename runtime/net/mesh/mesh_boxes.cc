#include "runtime/net/mesh/mesh_boxes.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// An empty message also takes memory.
size_t CostOf(size_t bytes) { return bytes + 128; }

Status WrongSize(uint32_t peer, size_t came, size_t expected) {
  return Mismatch(Format("rank {} sent {} bytes where {} were expected", peer, came, expected));
}

// Removes the first message of a tag from its queue; nothing if there is none.
template <typename Queue>
typename Queue::value_type PopFront(ByMeshTag<Queue>& queues,
                                    typename ByMeshTag<Queue>::iterator at) {
  auto first = std::move(at->second.front());
  at->second.erase(at->second.begin());
  if (at->second.empty()) queues.erase(at);
  return first;
}

// Null: none has this tag.
MeshTransfer* FindFirst(const MeshTransfers& transfers, MeshTag tag) {
  const auto found = std::ranges::find(transfers, tag, &MeshTransfer::tag);
  return found == transfers.end() ? nullptr : *found;
}

MeshTransfer* PopFirst(MeshTransfers& transfers, MeshTag tag) {
  const auto found = std::ranges::find(transfers, tag, &MeshTransfer::tag);
  if (found == transfers.end()) return nullptr;
  MeshTransfer* first = *found;
  transfers.erase(found);
  return first;
}

// Puts the message where its receive expects it.
void Put(std::string_view message, const MeshTransfer& transfer) {
  if (transfer.consumer == nullptr) {
    if (!message.empty()) std::memcpy(transfer.to, message.data(), message.size());
    return;
  }
  const std::span<std::byte> window = transfer.consumer->window();
  while (!message.empty()) {
    const size_t count = std::min(message.size(), window.size());
    std::memcpy(window.data(), message.data(), count);
    transfer.consumer->Consume(count);
    message.remove_prefix(count);
  }
}

bool EraseFrom(ByMeshTag<MeshTransfers>& queues, const MeshTransfer* transfer) {
  auto at = queues.find(transfer->tag);
  if (at == queues.end()) return false;
  size_t erased = std::erase(at->second, transfer);
  if (at->second.empty()) queues.erase(at);
  return erased > 0;
}

void FailAll(ByMeshTag<MeshTransfers>& queues, const Status& why) {
  for (auto& [tag, queue] : queues) {
    for (MeshTransfer* transfer : queue) transfer->Finish(why);
  }
  queues.clear();
}

}  // namespace

// ---- MeshOutbox

void MeshOutbox::Put(MeshFrameType type, MeshTag tag, std::string payload) {
  const MeshHeader header = EncodeMeshHeader({type, payload.size(), tag, ++numbered_});
  queue_.push_back({header, nullptr, payload.size(), nullptr, std::move(payload)});
}

void MeshOutbox::PutReady(MeshTag tag) {
  const auto place = queue_.begin() + (sent_ > 0 ? 1 : 0);
  queue_.insert(place,
                {EncodeMeshHeader({MeshFrameType::kReady, 0, tag}), nullptr, 0, nullptr, {}});
}

void MeshOutbox::PutBye(std::string why) {
  why.resize(std::min(why.size(), kMaxByeBytes));
  Put(MeshFrameType::kBye, {}, std::move(why));
}

void MeshOutbox::Enqueue(MeshTransfer* transfer) {
  const MeshFrame frame{MeshFrameType::kData, transfer->bytes, transfer->tag, ++numbered_};
  queue_.push_back({EncodeMeshHeader(frame), transfer->from, transfer->bytes, transfer, {}});
}

void MeshOutbox::Send(MeshTransfer* transfer) {
  auto parked = parked_.find(transfer->tag);
  bool large = transfer->needs_leave();
  if (parked == parked_.end() && large) {
    auto ready = ready_.find(transfer->tag);
    if (ready != ready_.end()) {
      if (--ready->second == 0) ready_.erase(ready);
      large = false;
    }
  }
  if (parked == parked_.end() && !large) {
    Enqueue(transfer);
  } else {
    parked_[transfer->tag].push_back(transfer);
  }
}

void MeshOutbox::ReceiveReady(MeshTag tag) {
  auto parked = parked_.find(tag);
  if (parked == parked_.end()) {
    ++ready_[tag];
    return;
  }
  MeshTransfers& queue = parked->second;
  do {
    Enqueue(queue.front());
    queue.erase(queue.begin());
  } while (!queue.empty() && queue.front()->bytes <= kMeshEagerBytes);
  if (queue.empty()) parked_.erase(parked);
}

size_t MeshOutbox::Pieces(std::span<iovec> room) const {
  size_t used = 0, skip = sent_;
  for (const Item& item : queue_) {
    if (used + 2 > room.size()) break;
    const std::byte* payload = item.transfer != nullptr
                                   ? item.payload
                                   : reinterpret_cast<const std::byte*>(item.own.data());
    if (skip < kMeshHeaderBytes) {
      room[used++] = {const_cast<std::byte*>(item.header.data()) + skip, kMeshHeaderBytes - skip};
      skip = 0;
    } else {
      skip -= kMeshHeaderBytes;
    }
    if (item.bytes > skip)
      room[used++] = {const_cast<std::byte*>(payload) + skip, item.bytes - skip};
    skip = 0;
  }
  return used;
}

void MeshOutbox::Sent(size_t count) {
  sent_ += count;
  while (!queue_.empty() && sent_ >= kMeshHeaderBytes + queue_.front().bytes) {
    sent_ -= kMeshHeaderBytes + queue_.front().bytes;
    if (queue_.front().transfer != nullptr) queue_.front().transfer->Finish(Status::Ok());
    queue_.pop_front();
  }
}

bool MeshOutbox::Cancel(const MeshTransfer* transfer) {
  if (EraseFrom(parked_, transfer)) return true;
  auto at = std::find_if(queue_.begin(), queue_.end(),
                         [&](const Item& item) { return item.transfer == transfer; });
  if (at == queue_.end()) return true;
  if (at == queue_.begin() && sent_ > 0) return false;
  MeshFrame frame = *DecodeMeshHeader(at->header.data());
  frame.type = MeshFrameType::kGone;  // the receiver waits for its number
  frame.bytes = 0;
  *at = {EncodeMeshHeader(frame), nullptr, 0, nullptr, {}};
  return true;
}

void MeshOutbox::Fail(const Status& why) {
  for (Item& item : queue_) {
    if (item.transfer != nullptr) item.transfer->Finish(why);
  }
  queue_.clear();
  sent_ = 0;
  FailAll(parked_, why);
  ready_.clear();
}

// ---- MeshInbox

void MeshInbox::Hand(std::string message, MeshTransfer* transfer) {
  transfer->peer = peer_;
  if (transfer->kind == MeshTransfer::Kind::kReceiveSmall) {
    transfer->small = std::move(message);
    transfer->Finish(Status::Ok());
  } else if (message.size() != transfer->bytes) {
    transfer->Finish(WrongSize(peer_, message.size(), transfer->bytes));
  } else {
    Put(message, *transfer);
    transfer->Finish(Status::Ok());
  }
}

bool MeshInbox::ReceiveKept(MeshTransfer* transfer) {
  auto kept = kept_.find(transfer->tag);
  if (kept == kept_.end()) return false;
  std::string message = PopFront(kept_, kept);
  kept_bytes_ -= CostOf(message.size());
  Hand(std::move(message), transfer);
  return true;
}

void MeshInbox::Receive(MeshTransfer* transfer) {
  if (ReceiveKept(transfer)) return;
  posted_.push_back(transfer);
  if (transfer->kind == MeshTransfer::Kind::kReceive && transfer->needs_leave())
    outbox_.PutReady(transfer->tag);
}

bool MeshInbox::Cancel(const MeshTransfer* transfer) {
  if (transfer == direct_) return false;
  std::erase(posted_, transfer);
  return true;
}

void MeshInbox::Fail(const Status& why) {
  if (direct_ != nullptr) direct_->Finish(why);
  direct_ = nullptr;
  for (MeshTransfer* transfer : posted_) transfer->Finish(why);
  posted_.clear();
}

MeshPlace MeshInbox::KeepRoom(size_t bytes) {
  arriving_.resize(bytes);
  kept_bytes_ += CostOf(bytes);
  return {reinterpret_cast<std::byte*>(arriving_.data())};
}

Result<MeshPlace> MeshInbox::Begin(const MeshFrame& frame) {
  if (bye_) return InvalidArgument("it said goodbye and then went on talking");
  static std::byte nowhere;  // never written
  if (frame.type == MeshFrameType::kReady) return MeshPlace{&nowhere};
  if (frame.number > taken_ + 1) return MeshPlace{};
  if (frame.number <= taken_ || taking_)
    return InvalidArgument(Format("it sent frame {} twice", frame.number));
  Result<MeshPlace> place = PlaceOf(frame);
  taking_ = place.ok() && place->to != nullptr;
  return place;
}

Result<MeshPlace> MeshInbox::PlaceOf(const MeshFrame& frame) {
  if (frame.type != MeshFrameType::kData) return KeepRoom(frame.bytes);
  const MeshTransfer* posted = FindFirst(posted_, frame.tag);
  bool direct = posted != nullptr && posted->kind == MeshTransfer::Kind::kReceive &&
                posted->bytes == frame.bytes && frame.bytes > 0;
  if (direct) {
    direct_ = PopFirst(posted_, frame.tag);
    if (direct_->consumer == nullptr) return MeshPlace{direct_->to};
    const std::span<std::byte> window = direct_->consumer->window();
    return MeshPlace{window.data(), window.size()};
  }
  if (frame.bytes > kMeshEagerBytes) {
    if (posted != nullptr) return WrongSize(peer_, frame.bytes, posted->bytes);
    return MeshPlace{};  // eager: its receive has not been posted yet
  }
  const bool awaited = posted != nullptr || FindFirst(any_, frame.tag) != nullptr;
  if (!awaited && kept_bytes_ + CostOf(frame.bytes) > most_kept_) return MeshPlace{};
  return KeepRoom(frame.bytes);
}

MeshTransfer* MeshInbox::PopReceive(MeshTag tag) {
  MeshTransfer* first = PopFirst(posted_, tag);
  return first != nullptr ? first : PopFirst(any_, tag);
}

void MeshInbox::Deliver(MeshTag tag) {
  MeshTransfer* receive = PopReceive(tag);
  if (receive == nullptr) {
    kept_[tag].push_back(std::move(arriving_));
  } else {
    kept_bytes_ -= CostOf(arriving_.size());
    Hand(std::move(arriving_), receive);
  }
  arriving_ = {};
}

Status MeshInbox::End(const MeshFrame& frame) {
  if (frame.type == MeshFrameType::kReady) {
    outbox_.ReceiveReady(frame.tag);
    return Status::Ok();
  }
  taken_ = frame.number;
  taking_ = false;
  completed_large_ = completed_large_ || frame.bytes > kMeshEagerBytes;
  if (direct_ != nullptr) {
    direct_->Finish(Status::Ok());
    direct_ = nullptr;
    return Status::Ok();
  }
  if (frame.type == MeshFrameType::kData) {
    Deliver(frame.tag);
    return Status::Ok();
  }
  kept_bytes_ -= CostOf(arriving_.size());
  if (frame.type == MeshFrameType::kBye) {
    bye_ = true;
    bye_text_ = std::move(arriving_);
  }
  arriving_ = {};
  return Status::Ok();
}

}  // namespace hvd
