#include "runtime/backends/hosts/message_sleep.h"

#include <utility>

namespace hvd {

void MessageSleep::Begin() {
  MutexLock lock(mutex_);
  sleeps_ = true;
}

void MessageSleep::End() {
  MutexLock lock(mutex_);
  sleeps_ = false;
}

void MessageSleep::Interrupt() {
  {
    MutexLock lock(mutex_);
    if (!std::exchange(sleeps_, false)) return;
  }
  comm_.Wake();
}

void MessageSleep::NoteCheck() {
  MutexLock lock(mutex_);
  published_before_ = published_;
}

bool MessageSleep::BeginHold() {
  MutexLock lock(mutex_);
  if (published_ != published_before_) return false;
  holder_ = std::this_thread::get_id();
  return true;
}

void MessageSleep::EndHold() {
  MutexLock lock(mutex_);
  holder_ = {};
  sleeps_ = false;
}

bool MessageSleep::held() {
  MutexLock lock(mutex_);
  return holder_ != std::thread::id();
}

bool MessageSleep::held_by_caller() {
  MutexLock lock(mutex_);
  return holder_ == std::this_thread::get_id();
}

void MessageSleep::NotePublished() {
  {
    MutexLock lock(mutex_);
    ++published_;
    if (holder_ == std::thread::id() || holder_ == std::this_thread::get_id()) return;
  }
  comm_.Wake();
}

}  // namespace hvd
