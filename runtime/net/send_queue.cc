#include "runtime/net/send_queue.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hvd {

void SendQueue::AddControl(const std::string& bytes, uint64_t generation) {
  std::string_view rest = bytes;
  do {
    std::string_view part = rest.substr(0, kMaxFramePayload);
    rest.remove_prefix(part.size());
    control_.push_back({FrameType::kControl, !rest.empty(), generation, 0, std::string(part)});
  } while (!rest.empty());
}

void SendQueue::AddLog(std::string bytes, uint64_t generation) {
  logs_.push_back({FrameType::kLog, false, generation, 0, std::move(bytes)});
}

void SendQueue::AddBulk(std::string bytes, uint64_t generation) {
  bulk_.push_back({FrameType::kBulk, false, generation, 0, std::move(bytes)});
}

bool SendQueue::LogsMayGo() const {
  return !logs_.empty() && log_sent_ + logs_.front().payload.size() <= log_allowed_;
}

const QueuedFrame* SendQueue::NextToSend() {
  std::deque<QueuedFrame>* queue = &control_;
  if (control_.empty()) {
    bool bulk = !bulk_.empty() && !(bulk_went_last_ && LogsMayGo());
    if (!bulk && !LogsMayGo()) return nullptr;
    queue = bulk ? &bulk_ : &logs_;
    bulk_went_last_ = bulk;
  }
  if (queue == &logs_) log_sent_ += logs_.front().payload.size();
  unacknowledged_.push_back(std::move(queue->front()));
  queue->pop_front();
  unacknowledged_.back().sequence = next_sequence_++;
  return &unacknowledged_.back();
}

void SendQueue::AllowLogs(uint64_t bytes) { log_allowed_ = std::max(log_allowed_, bytes); }

Status SendQueue::Acknowledge(uint64_t sequence) {
  if (sequence >= next_sequence_)
    return InvalidArgument("a frame was acknowledged that was never sent");
  while (!unacknowledged_.empty() && unacknowledged_.front().sequence <= sequence)
    unacknowledged_.pop_front();
  return Status::Ok();
}

}  // namespace hvd
