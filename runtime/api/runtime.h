// Runtime: the state behind the C ABI of this process; the only global of the repository.
//
// Calls into a session count themselves (SessionRef), so that a shutdown in one thread waits for
// the others to come out.
#ifndef HVD_RUNTIME_API_RUNTIME_H_
#define HVD_RUNTIME_API_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/api/init_options.h"
#include "runtime/api/session.h"
#include "runtime/api/world_joiner.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class Runtime {
 public:
  // Made at first use, never destroyed (threads may outlive static destructors).
  static Runtime& Get();
  // The runtime if Get was ever called, else null.
  static Runtime* Existing();

  Status Init(const InitOptions& options);
  void Shutdown();
  // As hvd_note_stacks; for the sessions to come.
  void NoteStacks(uint32_t signal, uint32_t fd) {
    stack_signal_.store(signal, std::memory_order_relaxed);
    stack_fd_.store(fd, std::memory_order_relaxed);
  }
  // At the end of a process that ends with this code.
  void Finish(int code);

  // Set in a child forked from this process: nothing here belongs to it.
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  SharedHeap& heap() { return heap_; }
  // True for a handle of a world that was shut down.
  bool IsOver(Engine::Handle handle) const {
    const uint32_t generation = Operation::GenerationOf(handle);
    return generation != 0 && generation <= handles_given_.load(std::memory_order_acquire);
  }

 private:
  friend class SessionRef;
  Runtime();
  // Joins one world; kInProgress: it broke at once, and another one will follow.
  Status OpenSession(const InitOptions& options, EngineOptions engine) HVD_REQUIRES(mutex_);
  void CloseSession() HVD_REQUIRES(mutex_);
  // Around a fork: the first takes locks that the others release, which clang cannot follow.
  void PrepareFork() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInParent() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInChild() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void UnlockAfterFork() HVD_NO_THREAD_SAFETY_ANALYSIS;

  WorldJoiner joiner_;
  SharedHeap heap_;
  Mutex mutex_;  // Init and Shutdown, one at a time
  // A call that changes owned_ holds this as well, and so does a fork. Init waits for others
  // without it: MPI_Init may fork.
  Mutex state_;
  // Changed with state_ held as well.
  std::unique_ptr<Session> owned_ HVD_GUARDED_BY(mutex_);
  std::atomic<Session*> session_{nullptr};  // owned_ while it accepts calls
  std::atomic<uint32_t> users_{0};          // calls inside the session
  std::atomic<uint32_t> handles_given_{0};  // by sessions that are over
  std::atomic<bool> forked_{false};
  std::atomic<uint32_t> stack_signal_{0}, stack_fd_{0};
};

// The current session for the length of one call; empty when not initialised.
class SessionRef {
 public:
  SessionRef() : runtime_(Runtime::Get()) {
    runtime_.users_.fetch_add(1, std::memory_order_seq_cst);
    session_ = runtime_.session_.load(std::memory_order_seq_cst);
  }
  ~SessionRef() { runtime_.users_.fetch_sub(1, std::memory_order_release); }
  SessionRef(const SessionRef&) = delete;

  explicit operator bool() const { return session_ != nullptr; }
  Session* operator->() const { return session_; }
  Session& operator*() const { return *session_; }

 private:
  Runtime& runtime_;
  Session* session_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_RUNTIME_H_
