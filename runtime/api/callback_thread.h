// CallbackThread: waits for the operations of a session that have a callback and runs the
// callbacks. The thread starts with the first such operation and sleeps while none is in flight.
#ifndef HVD_RUNTIME_API_CALLBACK_THREAD_H_
#define HVD_RUNTIME_API_CALLBACK_THREAD_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "hvd/hvd.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/core/engine.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class CallbackThread {
 public:
  // Both outlive this object.
  CallbackThread(Engine& engine, SharedHeap& heap) : engine_(engine), heap_(heap) {}
  ~CallbackThread() { Stop(); }
  CallbackThread(const CallbackThread&) = delete;

  // Whether the calling thread is inside a callback; it must not end the session then.
  static bool IsCalling();

  // Submits the request of hvd_submit; `request.on_done` is called at its end, but not if this
  // returns an error.
  Status Submit(const RequestSpec& spec, const hvd_request& request);
  // Returns when every callback has returned. Requires that the engine is closed and nothing is
  // being submitted.
  void Stop();

 private:
  Status Start();
  void Run();
  void Call(DoneCallback callback, const Status& status, OperationResult result);

  Engine& engine_;
  SharedHeap& heap_;
  std::atomic<uint32_t> submitted_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> started_{false};
  Mutex mutex_;  // serialises Start
  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_CALLBACK_THREAD_H_
