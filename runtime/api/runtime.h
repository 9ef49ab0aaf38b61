// Runtime: the process-wide state behind the C ABI; the only global of the repository.
//
// Calls into a session are counted (SessionRef), so that a shutdown in one thread waits until those
// of other threads have returned.
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
  // Created at first use, never destroyed (threads may outlive static destructors).
  static Runtime& Get();
  // The runtime if Get has been called, else null.
  static Runtime* Existing();

  Status Init(const InitOptions& options);
  void Shutdown();
  // See hvd_note_stacks; for later sessions.
  void NoteStacks(uint32_t signal, uint32_t fd) {
    stack_signal_.store(signal, std::memory_order_relaxed);
    stack_fd_.store(fd, std::memory_order_relaxed);
  }
  // Called at the exit of the process, with its exit code.
  void Finish(int code);

  // True in a forked child, which owns nothing of this state.
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
  // Joins one world; kInProgress: it broke while joining, and another one will follow.
  Status OpenSession(const InitOptions& options, EngineOptions engine) HVD_REQUIRES(mutex_);
  void CloseSession() HVD_REQUIRES(mutex_);
  // Around a fork: PrepareFork acquires locks that the others release, which clang's analysis
  // cannot follow.
  void PrepareFork() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInParent() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInChild() HVD_NO_THREAD_SAFETY_ANALYSIS;
  void UnlockAfterFork() HVD_NO_THREAD_SAFETY_ANALYSIS;

  WorldJoiner joiner_;
  SharedHeap heap_;
  Mutex mutex_;  // serialises Init and Shutdown
  // Also held by calls that change owned_, and by a fork. Init waits for other ranks without it:
  // MPI_Init may fork.
  Mutex state_;
  // Changed with state_ held as well.
  std::unique_ptr<Session> owned_ HVD_GUARDED_BY(mutex_);
  std::atomic<Session*> session_{nullptr};  // owned_ while it accepts calls
  std::atomic<uint32_t> users_{0};          // calls inside the session
  std::atomic<uint32_t> handles_given_{0};  // by past sessions
  std::atomic<bool> forked_{false};
  std::atomic<uint32_t> stack_signal_{0}, stack_fd_{0};
};

// The current session for the duration of one call; empty if not initialised.
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
