#include "test/sim/seeded_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

// The functions that --wrap replaces by those below.
extern "C" {
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __real_pthread_join(pthread_t, void**);
pthread_t __real_pthread_self();
int __real_pthread_mutex_lock(pthread_mutex_t*);
int __real_pthread_mutex_unlock(pthread_mutex_t*);
int __real_pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*);
int __real_pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int __real_pthread_cond_signal(pthread_cond_t*);
int __real_pthread_cond_broadcast(pthread_cond_t*);
int __real_sched_yield();
int __real_clock_gettime(clockid_t, timespec*);
}

namespace hvd::test {
namespace {

constexpr size_t kStackBytes = size_t{512} << 10;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kStartNs = 1000 * kBillion;
// A lock is a place where another thread may go on; mostly none does.
constexpr uint64_t kSwitchOneIn = 8;
constexpr uint64_t kMostStepNs = 2000;

int64_t NanosecondsOf(const timespec& time) {
  if (time.tv_sec >= kNever / kBillion) return kNever;
  return time.tv_sec * kBillion + time.tv_nsec;
}

}  // namespace

class FiberScheduler {
 public:
  explicit FiberScheduler(uint64_t seed) : random_(seed) {
    fibers_.push_back(std::make_unique<Fiber>());  // the calling thread
    current_ = fibers_[0].get();
  }
  ~FiberScheduler() {
    if (fibers_.size() != 1) Stop("a thread outlives the seeded threads");
    for (void* stack : stacks_) ::munmap(stack, kStackBytes);
  }

  pthread_t Create(void* (*run)(void*), void* argument) {
    fibers_.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *fibers_.back();
    fiber.run = run;
    fiber.argument = argument;
    fiber.stack = TakeStack();
    ::getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    ::makecontext(&fiber.context, RunCurrent, 0);
    Point();
    return reinterpret_cast<pthread_t>(&fiber);
  }

  void Join(pthread_t thread) {
    auto* fiber = reinterpret_cast<Fiber*>(thread);
    while (!fiber->over) WaitFor(fiber, kNever);
    stacks_.push_back(fiber->stack);
    std::erase_if(fibers_, [fiber](const auto& each) { return each.get() == fiber; });
  }

  pthread_t self() const {
    return current_ == fibers_[0].get() ? __real_pthread_self()
                                        : reinterpret_cast<pthread_t>(current_);
  }

  // A mutex is always free for who tries here, or held by a fiber that waits for its turn.
  void Lock(pthread_mutex_t* mutex) {
    Point();
    while (::pthread_mutex_trylock(mutex) == EBUSY) WaitFor(mutex, kNever);
  }
  void Unlock(pthread_mutex_t* mutex) {
    __real_pthread_mutex_unlock(mutex);
    WakeAll(mutex);
    Point();
  }

  int Wait(pthread_cond_t* condition, pthread_mutex_t* mutex, int64_t deadline) {
    __real_pthread_mutex_unlock(mutex);
    WakeAll(mutex);
    const bool woken = WaitFor(condition, deadline);
    while (::pthread_mutex_trylock(mutex) == EBUSY) WaitFor(mutex, kNever);
    return woken ? 0 : ETIMEDOUT;
  }
  void WakeAll(const void* what) {
    for (const auto& fiber : fibers_) {
      if (fiber->awaits == what) Wake(*fiber, true);
    }
  }
  void WakeOne(const void* what) {
    std::vector<Fiber*> waiting;
    for (const auto& fiber : fibers_) {
      if (fiber->awaits == what) waiting.push_back(fiber.get());
    }
    if (!waiting.empty()) Wake(*waiting[random_() % waiting.size()], true);
  }

  // Others go on, if any can.
  void Yield() {
    Step();
    if (OthersReady()) SwitchToAny(/*but=*/current_);
  }
  void Sleep(int64_t duration) { WaitFor(this, now_ + duration); }

  int64_t now() const { return now_; }
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Fiber {
    ucontext_t context;
    void* (*run)(void*) = nullptr;
    void *argument = nullptr, *stack = nullptr;
    const void* awaits = nullptr;  // null: it is ready, or over
    int64_t deadline = kNever;
    bool woken = false;  // not by its deadline
    bool over = false;

    bool ready() const { return awaits == nullptr && !over; }
  };

  static void RunCurrent();

  [[noreturn]] static void Stop(const char* why) {
    std::fprintf(stderr, "seeded threads: %s\n", why);
    std::abort();
  }

  void Step() {
    now_ += static_cast<int64_t>(random_() % kMostStepNs);
    fingerprint_ = fingerprint_ * 31 + 1;
    if (now_ >= next_deadline_) WakeLate();
  }
  void Point() {
    Step();
    if (random_() % kSwitchOneIn == 0) SwitchToAny(nullptr);
  }

  void Wake(Fiber& fiber, bool woken) {
    fiber.awaits = nullptr;
    fiber.woken = woken;
    fiber.deadline = kNever;
  }
  void WakeLate() {
    next_deadline_ = kNever;
    for (const auto& fiber : fibers_) {
      if (fiber->awaits == nullptr) continue;
      if (fiber->deadline <= now_)
        Wake(*fiber, false);
      else
        next_deadline_ = std::min(next_deadline_, fiber->deadline);
    }
  }
  void Jump() {
    next_deadline_ = kNever;
    for (const auto& fiber : fibers_) {
      if (fiber->awaits != nullptr) next_deadline_ = std::min(next_deadline_, fiber->deadline);
    }
    if (next_deadline_ == kNever) return;
    now_ = std::max(now_, next_deadline_);
    WakeLate();
  }

  // True unless the deadline came first.
  bool WaitFor(const void* what, int64_t deadline) {
    Fiber& own = *current_;
    own.awaits = what;
    own.deadline = deadline;
    next_deadline_ = std::min(next_deadline_, deadline);
    Step();
    SwitchToAny(nullptr);
    return own.woken;
  }

  bool OthersReady() const {
    return std::any_of(fibers_.begin(), fibers_.end(), [this](const auto& fiber) {
      return fiber.get() != current_ && fiber->ready();
    });
  }

  void SwitchToAny(const Fiber* but) {
    std::vector<size_t> ready = Ready(but);
    if (ready.empty()) {
      Jump();
      ready = Ready(but);
    }
    if (ready.empty()) Stop("all threads wait for each other");
    const size_t chosen = ready[random_() % ready.size()];
    fingerprint_ = fingerprint_ * 31 + chosen;
    Fiber* before = std::exchange(current_, fibers_[chosen].get());
    if (before != current_) ::swapcontext(&before->context, &current_->context);
  }
  std::vector<size_t> Ready(const Fiber* but) const {
    std::vector<size_t> ready;
    for (size_t i = 0; i < fibers_.size(); ++i) {
      if (fibers_[i].get() != but && fibers_[i]->ready()) ready.push_back(i);
    }
    return ready;
  }

  void* TakeStack() {
    if (!stacks_.empty()) {
      void* stack = stacks_.back();
      stacks_.pop_back();
      return stack;
    }
    void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || ::mprotect(stack, 4096, PROT_NONE) != 0) Stop("no memory");
    return stack;
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;  // [0]: the thread that made this object
  std::vector<void*> stacks_;                   // free
  Fiber* current_ = nullptr;
  int64_t now_ = kStartNs, next_deadline_ = kNever;
  uint64_t fingerprint_ = 1;
};

namespace {

FiberScheduler* g_scheduler = nullptr;

}  // namespace

void FiberScheduler::RunCurrent() {
  FiberScheduler& scheduler = *g_scheduler;
  Fiber& own = *scheduler.current_;
  own.run(own.argument);
  own.over = true;
  scheduler.WakeAll(&own);
  scheduler.SwitchToAny(nullptr);
  Stop("a thread that is over goes on");
}

SeededThreads::SeededThreads(uint64_t seed) : scheduler_(std::make_unique<FiberScheduler>(seed)) {
  g_scheduler = scheduler_.get();
}

SeededThreads::~SeededThreads() { g_scheduler = nullptr; }

void SeededThreads::Sleep(std::chrono::nanoseconds duration) {
  scheduler_->Sleep(duration.count());
}

uint64_t SeededThreads::fingerprint() const { return scheduler_->fingerprint(); }

}  // namespace hvd::test

// These stand for the C library in this program.
using hvd::test::g_scheduler;

extern "C" {

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument) {
  if (g_scheduler == nullptr) return __real_pthread_create(thread, attributes, run, argument);
  *thread = g_scheduler->Create(run, argument);
  return 0;
}

int __wrap_pthread_join(pthread_t thread, void** result) {
  if (g_scheduler == nullptr) return __real_pthread_join(thread, result);
  g_scheduler->Join(thread);
  return 0;
}

pthread_t __wrap_pthread_self() {
  return g_scheduler == nullptr ? __real_pthread_self() : g_scheduler->self();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (g_scheduler == nullptr) return __real_pthread_mutex_lock(mutex);
  g_scheduler->Lock(mutex);
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (g_scheduler == nullptr) return __real_pthread_mutex_unlock(mutex);
  g_scheduler->Unlock(mutex);
  return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (g_scheduler == nullptr) return __real_pthread_cond_wait(condition, mutex);
  return g_scheduler->Wait(condition, mutex, hvd::test::kNever);
}

int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const timespec* deadline) {
  if (g_scheduler == nullptr) {
    return __real_pthread_cond_clockwait(condition, mutex, clock, deadline);
  }
  return g_scheduler->Wait(condition, mutex, hvd::test::NanosecondsOf(*deadline));
}

int __wrap_pthread_cond_signal(pthread_cond_t* condition) {
  if (g_scheduler == nullptr) return __real_pthread_cond_signal(condition);
  g_scheduler->WakeOne(condition);
  return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t* condition) {
  if (g_scheduler == nullptr) return __real_pthread_cond_broadcast(condition);
  g_scheduler->WakeAll(condition);
  return 0;
}

int __wrap_sched_yield() {
  if (g_scheduler == nullptr) return __real_sched_yield();
  g_scheduler->Yield();
  return 0;
}

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  if (g_scheduler == nullptr || clock != CLOCK_MONOTONIC) {
    return __real_clock_gettime(clock, time);
  }
  time->tv_sec = g_scheduler->now() / hvd::test::kBillion;
  time->tv_nsec = g_scheduler->now() % hvd::test::kBillion;
  return 0;
}
}
