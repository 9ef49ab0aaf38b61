// Mutex and MutexLock: std::mutex and std::unique_lock with the annotations that libstdc++ lacks. A
// MutexLock can be passed to std::condition_variable; annotate the predicate of a wait with
// HVD_REQUIRES(mutex).
#ifndef HVD_RUNTIME_BASE_MUTEX_H_
#define HVD_RUNTIME_BASE_MUTEX_H_

#include <mutex>

#include "runtime/base/thread_annotations.h"

namespace hvd {

class HVD_MUTEX_CLASS Mutex : public std::mutex {
 public:
  void lock() HVD_ACQUIRE() { std::mutex::lock(); }
  void unlock() HVD_RELEASE() { std::mutex::unlock(); }
  bool try_lock() HVD_TRY_ACQUIRE(true) { return std::mutex::try_lock(); }
};

// Holds the mutex from construction to destruction, except between unlock and lock.
class HVD_LOCK_CLASS MutexLock : public std::unique_lock<std::mutex> {
 public:
  explicit MutexLock(Mutex& mutex) HVD_ACQUIRE(mutex) : std::unique_lock<std::mutex>(mutex) {}
  // Adopts a mutex that this thread already holds.
  MutexLock(Mutex& mutex, std::adopt_lock_t held) HVD_REQUIRES(mutex)
      : std::unique_lock<std::mutex>(mutex, held) {}
  ~MutexLock() HVD_RELEASE() {}
  void lock() HVD_ACQUIRE() { std::unique_lock<std::mutex>::lock(); }
  void unlock() HVD_RELEASE() { std::unique_lock<std::mutex>::unlock(); }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_MUTEX_H_
