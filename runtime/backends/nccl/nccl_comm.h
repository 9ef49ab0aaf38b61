// NcclComm: a communicator of NCCL for the members of a process set, from its start to its end.
//
// Nothing blocks: Begin, then Advance until true; Close, then Advance until true again. Dropping it
// before it is closed aborts it.
//
// Threads: Abort from any. All else from one thread at a time with the device's context current
// (CudaDevice::With), which Settled and Abort do not need. Each communicator has a mutex, held
// during its calls; none but Abort blocks, so Abort never has to wait.
//
// After the first error each call returns that error: only Abort is left, which also helps the
// other members, because NCCL notifies them.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_COMM_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_COMM_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/nccl/nccl_calls.h"
#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"

namespace hvd {

struct NcclCommOptions {
  NcclMember member;
  // The store key of the id: equal on all members, and used by this communicator only.
  std::string key = "nccl/0";
  Duration start_limit = std::chrono::seconds(60);
  Duration close_limit = std::chrono::seconds(10);
  // How long one Advance may wait for the store.
  Duration store_wait = std::chrono::milliseconds(10);
};

class NcclComm {
 public:
  // All members call this. `library` and `store` outlive the communicator.
  static std::unique_ptr<NcclComm> Begin(const NcclLibrary& library, KvStore& store,
                                         NcclCommOptions options, TimePoint now);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  const NcclLibrary& library() const { return library_; }
  const NcclMember& member() const { return options_.member; }

  // True once it is ready, or closed after Close. If a start or an end exceeds its limit, the error
  // names the stage.
  Result<bool> Advance(TimePoint now);
  // Calls NCCL while the communicator is ready. `calls` returns the first failed result, or
  // kNcclInProgress, or kNcclSuccess.
  Status Use(const std::function<NcclAnswer(const NcclApi& api, NcclCommHandle comm)>& calls);
  // True once all calls made are in their stream. Also returns later errors, such as another
  // member's end: call it repeatedly while work is in progress.
  Result<bool> Settled();
  // Ok, or an error that has occurred since. Also ok while the communicator starts or closes:
  // Advance returns the errors of these stages.
  Status Watch();
  // For memory that is moved often: NCCL moves it without copies of its own until the communicator
  // is closed. kUnsupported if the version lacks this.
  Status Register(void* memory, size_t bytes);
  // Ends the communicator when all members have called this and their work is done.
  Status Close(TimePoint now);

  // Ends the communicator now, whatever is in progress, and frees it: later calls return `why`.
  // Waits until the GPU has left NCCL's kernels. Not ok: NCCL failed to abort.
  Status Abort(const Status& why);

 private:
  enum class Stage { kId, kInit, kReady, kFinalize, kClosed };

  NcclComm(const NcclLibrary& library, KvStore& store, NcclCommOptions options, TimePoint now);

  Status AdvanceId() HVD_EXCLUDES(mutex_);
  Result<bool> AdvanceStage() HVD_REQUIRES(mutex_);
  Result<bool> AskForErrors() HVD_REQUIRES(mutex_);
  Status Check(const NcclAnswer& answer) HVD_REQUIRES(mutex_);
  Status Fail(Status failure) HVD_REQUIRES(mutex_);
  Status NotReady() const HVD_REQUIRES(mutex_);
  std::string Late() const HVD_REQUIRES(mutex_);
  Status AbortHandle() HVD_REQUIRES(mutex_);

  const NcclLibrary& library_;
  const NcclCommOptions options_;
  KvStore& store_;
  Mutex mutex_;
  Stage stage_ HVD_GUARDED_BY(mutex_) = Stage::kId;
  TimePoint deadline_ HVD_GUARDED_BY(mutex_);  // of a start or an end
  NcclCommHandle handle_ HVD_GUARDED_BY(mutex_) = nullptr;
  std::vector<void*> registered_ HVD_GUARDED_BY(mutex_);
  Status failure_ HVD_GUARDED_BY(mutex_);  // the first
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_COMM_H_
