#include "runtime/backends/cuda/captured_batches.h"

#include <utility>

namespace hvd {

CapturedBatches::~CapturedBatches() { Drop(Aborted("the lane has ended")); }

CapturedBatches::Action CapturedBatches::Choose(const Key& key) {
  MutexLock lock(mutex_);
  current_ = nullptr;
  if (key.empty() || !dropped_.ok()) return Action::kEnqueue;
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() == kMostKeys) MakeRoom(false);
    entries_[key].used = ++choices_;
    return Action::kEnqueue;
  }
  current_ = &found->second;
  current_->used = ++choices_;
  if (current_->kept) return Action::kLaunch;
  if (kept_ == kMostGraphs) MakeRoom(true);
  ++kept_;
  current_->kept = true;
  return Action::kCapture;
}

void CapturedBatches::MakeRoom(bool kept) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (kept && !entry->second.kept) continue;
    if (oldest == entries_.end() || entry->second.used < oldest->second.used) oldest = entry;
  }
  if (oldest->second.kept) --kept_;
  entries_.erase(oldest);
}

Result<bool> CapturedBatches::Begin() {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(dropped_);
  if (capturing_) return true;
  const Result<bool> begun = device_.BeginCapture();
  capturing_ = begun.ok() && *begun;
  return begun;
}

Status CapturedBatches::LaunchCaptured() {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(dropped_);
  capturing_ = false;
  Result<std::unique_ptr<CudaGraph>> graph = device_.EndCapture();
  if (!graph.ok()) return graph.status();
  current_->graph = std::move(*graph);
  return LaunchCurrent();
}

Status CapturedBatches::Launch() {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(dropped_);
  return LaunchCurrent();
}

Status CapturedBatches::LaunchCurrent() { return device_.Launch(*current_->graph); }

void CapturedBatches::Drop(const Status& why) {
  MutexLock lock(mutex_);
  if (dropped_.ok()) dropped_ = why;
  if (std::exchange(capturing_, false)) device_.DropCapture();
  current_ = nullptr;
  entries_.clear();
}

}  // namespace hvd
