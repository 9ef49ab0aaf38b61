#include "runtime/segment/alive.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "runtime/base/kernel_features.h"

namespace hvd {
namespace {

constexpr uint32_t kWatchedPerThread = 127;  // futex_waitv takes 128; one is for stopping
constexpr int64_t kLookAgainNs = 100'000'000;
constexpr int64_t kPollNs = 1'000'000;  // if futex_waitv is unavailable

void WakeAll(std::atomic<uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

struct futex_waitv WaitEntry(const std::atomic<uint32_t>& word, uint32_t expected) {
  struct futex_waitv entry {};
  entry.val = expected;
  entry.uaddr = reinterpret_cast<uintptr_t>(&word);
  entry.flags = FUTEX_32;
  return entry;
}

// Returns when one of the words differs from its expected value, or after a bounded time.
void WaitForChange(struct futex_waitv* entries, uint32_t count) {
  static const bool without = Without("futex_waitv");
  timespec deadline{};
  ::clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_nsec += kLookAgainNs;
  deadline.tv_sec += deadline.tv_nsec / 1'000'000'000;
  deadline.tv_nsec %= 1'000'000'000;
  long rc = -1;
  errno = ENOSYS;
  if (!without) rc = ::syscall(SYS_futex_waitv, entries, count, 0, &deadline, CLOCK_MONOTONIC);
  // Any other error means that the call is unavailable: the kernel is older (5.16), or a seccomp
  // filter refuses it.
  if (rc < 0 && errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR) {
    timespec pause{0, kPollNs};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

// The list entry is in private memory, the word in the page: the kernel only needs their fixed
// distance.
struct AliveMark::List {
  robust_list_head head{};
  robust_list entry{};
  robust_list_head* former = nullptr;  // the list the thread had registered before
};

AliveMark::AliveMark() : list_(std::make_unique<List>()) {}

AliveMark::~AliveMark() { Release(); }

Status AliveMark::Hold(std::atomic<uint32_t>& word) {
  Release();
  List& list = *list_;
  size_t length = 0;
  if (::syscall(SYS_get_robust_list, 0, &list.former, &length) != 0) {
    return SystemError("asking for the robust list of the runtime thread", errno);
  }
  list.entry.next = &list.head.list;
  list.head.list.next = &list.entry;
  list.head.futex_offset = reinterpret_cast<char*>(&word) - reinterpret_cast<char*>(&list.entry);
  list.head.list_op_pending = nullptr;
  if (::syscall(SYS_set_robust_list, &list.head, sizeof list.head) != 0) {
    return SystemError("registering the robust futex of the runtime thread", errno);
  }
  word_ = &word;
  // The waiters bit is always set, so that the kernel always wakes the agent.
  word.store(static_cast<uint32_t>(::gettid()) | FUTEX_WAITERS, std::memory_order_release);
  WakeAll(&word);
  return Status::Ok();
}

void AliveMark::Release() {
  if (word_ == nullptr) return;
  word_->store(0, std::memory_order_release);
  list_->head.list.next = &list_->head.list;
  // The kernel walks the registered list when the thread exits: by then ours may be gone.
  ::syscall(SYS_set_robust_list, list_->former, sizeof list_->head);
  WakeAll(word_);
  word_ = nullptr;
}

// A holder writes its thread id with the waiters bit; the kernel replaces the id by the owner-died
// bit.
AliveWord ReadAliveWord(uint32_t word) {
  constexpr uint32_t kWaiters = FUTEX_WAITERS, kDied = FUTEX_OWNER_DIED;
  if (word == 0) return AliveWord::kFree;
  if (word == kDied || word == (kDied | kWaiters)) return AliveWord::kDied;
  const bool held = (word & kDied) == 0 && (word & kWaiters) != 0 && (word & FUTEX_TID_MASK) != 0;
  return held ? AliveWord::kHeld : AliveWord::kDamaged;
}

DeathWatch::DeathWatch(JobPage page, std::function<void(uint32_t)> on_death,
                       std::function<void(uint32_t)> on_damage)
    : page_(page), on_death_(std::move(on_death)), on_damage_(std::move(on_damage)) {
  for (uint32_t first = 0; first < page.local_size(); first += kWatchedPerThread) {
    uint32_t count = std::min(kWatchedPerThread, page.local_size() - first);
    threads_.emplace_back([this, first, count] { Run(first, count); });
  }
}

DeathWatch::~DeathWatch() {
  stop_.store(1, std::memory_order_release);
  WakeAll(&stop_);
  for (std::thread& thread : threads_) thread.join();
}

void DeathWatch::Run(uint32_t first, uint32_t count) {
  std::array<bool, kWatchedPerThread> reported{};
  std::array<struct futex_waitv, kWatchedPerThread + 1> entries{};
  while (stop_.load(std::memory_order_acquire) == 0) {
    uint32_t used = 0;
    entries[used++] = WaitEntry(stop_, 0);
    for (uint32_t i = 0; i < count; ++i) {
      if (reported[i]) continue;
      const std::atomic<uint32_t>& alive = page_.rank(first + i).alive;
      uint32_t word = alive.load(std::memory_order_acquire);
      const AliveWord state = ReadAliveWord(word);
      if (state == AliveWord::kFree || state == AliveWord::kHeld) {
        entries[used++] = WaitEntry(alive, word);
        continue;
      }
      reported[i] = true;
      if (state == AliveWord::kDied) {
        on_death_(first + i);
      } else if (on_damage_) {
        on_damage_(first + i);
      }
    }
    WaitForChange(entries.data(), used);
  }
}

}  // namespace hvd
