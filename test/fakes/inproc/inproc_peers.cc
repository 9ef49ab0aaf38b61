#include "test/fakes/inproc/inproc_peers.h"

#include <chrono>
#include <utility>

namespace hvd {

InprocGroup::InprocGroup(uint32_t size, size_t capacity)
    : capacity_(capacity), unread_(size), left_(size, false) {
  for (auto& writers : unread_) writers.resize(size);
}

void InprocGroup::Break(std::string text) {
  std::lock_guard lock(mutex_);
  if (!broken_) broken_text_ = std::move(text);
  broken_ = true;
  ++changes_;
  changed_.notify_all();
}

InprocPeers::~InprocPeers() {
  std::lock_guard lock(group_.mutex_);
  group_.left_[rank_] = true;
  ++group_.changes_;
  group_.changed_.notify_all();
}

std::span<std::byte> InprocPeers::Reserve(size_t bytes) {
  std::lock_guard lock(group_.mutex_);
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_ || group_.left_[r]) continue;
    if (group_.unread_[r][rank_].size() >= group_.capacity_) return {};
  }
  reserved_.assign(bytes, std::byte{0});
  return reserved_;
}

void InprocPeers::Commit() {
  auto record = std::make_shared<const std::vector<std::byte>>(std::move(reserved_));
  std::lock_guard lock(group_.mutex_);
  for (uint32_t r = 0; r < size(); ++r) {
    if (r != rank_ && !group_.left_[r]) group_.unread_[r][rank_].push_back(record);
  }
  ++group_.changes_;
  group_.changed_.notify_all();
}

std::span<const std::byte> InprocPeers::Peek(uint32_t peer) {
  std::lock_guard lock(group_.mutex_);
  const auto& unread = group_.unread_[rank_][peer];
  if (unread.empty()) return {};
  return *unread.front();
}

void InprocPeers::Consume(uint32_t peer) {
  std::lock_guard lock(group_.mutex_);
  group_.unread_[rank_][peer].pop_front();
}

bool InprocPeers::broken() const {
  std::lock_guard lock(group_.mutex_);
  return group_.broken_;
}

std::string InprocPeers::broken_text() const {
  std::lock_guard lock(group_.mutex_);
  return group_.broken_text_;
}

bool InprocPeers::HasLeft(uint32_t peer) const {
  std::lock_guard lock(group_.mutex_);
  return group_.left_[peer];
}

void InprocPeers::WakeAll() {
  std::lock_guard lock(group_.mutex_);
  ++group_.changes_;
  group_.changed_.notify_all();
}

uint32_t InprocPeers::AnnounceSleep() {
  std::lock_guard lock(group_.mutex_);
  return group_.changes_;
}

void InprocPeers::Sleep(uint32_t token, int64_t timeout_ns) {
  std::unique_lock lock(group_.mutex_);
  group_.changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                           [&] { return group_.changes_ != token; });
}

}  // namespace hvd
