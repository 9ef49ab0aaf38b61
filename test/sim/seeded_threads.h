// SeededThreads: while it lives, the threads of this program run one at a time, and a seed decides
// which goes on where one takes or releases a lock, waits or gives its core away. So the same seed
// is the same run. Time is counted by these steps, and jumps where all threads wait.
//
// Threads that start meanwhile are fibers of the calling thread and have ended when this object
// goes. The linker passes their calls of the C library here (see CMakeLists.txt). Tests only.
#ifndef HVD_TEST_SIM_SEEDED_THREADS_H_
#define HVD_TEST_SIM_SEEDED_THREADS_H_

#include <chrono>
#include <cstdint>
#include <memory>

namespace hvd::test {

class FiberScheduler;

class SeededThreads {
 public:
  // At most one at a time.
  explicit SeededThreads(uint64_t seed);
  ~SeededThreads();
  SeededThreads(const SeededThreads&) = delete;

  // In their time; the others go on meanwhile.
  void Sleep(std::chrono::nanoseconds duration);
  // Of the steps so far and the choices made: equal for equal runs.
  uint64_t fingerprint() const;

 private:
  std::unique_ptr<FiberScheduler> scheduler_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_SEEDED_THREADS_H_
