// StoppingMemory: whoever touches this memory stops there, as at a SIGSTOP, until it is let go. For
// tests of what the others do and say meanwhile. Where there are several, the last one ends first.
#ifndef HVD_TEST_FAKES_STOPPING_MEMORY_H_
#define HVD_TEST_FAKES_STOPPING_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "runtime/base/align.h"

namespace hvd::test {

class StoppingMemory {
 public:
  // The whole pages of [memory, memory + bytes), in this mapping of them only.
  StoppingMemory(void* memory, size_t bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto first = RoundUp(reinterpret_cast<uintptr_t>(memory), page);
    begin_ = reinterpret_cast<std::byte*>(first);
    bytes_ = (reinterpret_cast<uintptr_t>(memory) + bytes - first) / page * page;
    next_ = last_.exchange(this);
    struct sigaction action {};
    action.sa_sigaction = &Stop;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before_);
    Protect(PROT_NONE);
  }
  ~StoppingMemory() {
    LetGo();
    ::sigaction(SIGSEGV, &before_, nullptr);
    last_ = next_;
  }
  StoppingMemory(const StoppingMemory&) = delete;

  // Returns when a thread has stopped here.
  void AwaitStop() const {
    while (!stopped_.load()) std::this_thread::yield();
  }
  void LetGo() {
    Protect(PROT_READ | PROT_WRITE);
    open_.store(true);
  }

 private:
  void Protect(int how) const {
    if (::mprotect(begin_, bytes_, how) != 0) std::abort();
  }
  static void Stop(int, siginfo_t* info, void*) {
    auto* at = static_cast<std::byte*>(info->si_addr);
    StoppingMemory* memory = last_.load();
    while (memory != nullptr && (at < memory->begin_ || at >= memory->begin_ + memory->bytes_)) {
      memory = memory->next_;
    }
    if (memory == nullptr) {  // a mistake: it happens again, for real
      ::signal(SIGSEGV, SIG_DFL);
      return;
    }
    memory->stopped_.store(true);
    while (!memory->open_.load()) ::usleep(1000);
  }

  static inline std::atomic<StoppingMemory*> last_ = nullptr;  // those before it by next_
  StoppingMemory* next_;
  std::byte* begin_;
  size_t bytes_;
  struct sigaction before_ {};
  std::atomic<bool> stopped_ = false, open_ = false;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_STOPPING_MEMORY_H_
