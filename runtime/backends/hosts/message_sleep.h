// MessageSleep: the sleep of the thread that negotiates, until a message from another host or an
// Interrupt. That is the negotiation thread, or one that attends and stands in for it. Thread-safe;
// its lock is taken last.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MESSAGE_SLEEP_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MESSAGE_SLEEP_H_

#include <cstdint>
#include <thread>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/mutex.h"

namespace hvd {

class MessageSleep {
 public:
  // `comm` outlives it.
  explicit MessageSleep(InterHostComm& comm) : comm_(comm) {}

  // The caller is about to sleep. It checks once more for requests after this call, so that an
  // Interrupt is never missed.
  void Begin();
  void End();
  // Wakes the sleeping thread, if any, to handle a request.
  void Interrupt();

  // A thread that attends checks for work: it has seen all results published so far.
  void NoteCheck();
  // It is about to sleep in place of the negotiation thread. False: a result was published since
  // its last check.
  bool BeginHold();
  void EndHold();
  bool held();
  bool held_by_caller();
  // A result was published, by any thread. Ends the sleep of a thread that stands in.
  void NotePublished();

 private:
  InterHostComm& comm_;
  Mutex mutex_;
  bool sleeps_ HVD_GUARDED_BY(mutex_) = false;  // or is going to
  std::thread::id holder_ HVD_GUARDED_BY(mutex_);
  // Results so far, and at the last check.
  uint64_t published_ HVD_GUARDED_BY(mutex_) = 0, published_before_ HVD_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MESSAGE_SLEEP_H_
