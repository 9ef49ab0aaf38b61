// MPI in this process: initialising and finalising it, the threads that may call it, and waits.
//
// Nothing here blocks inside MPI once it is initialised: an Activity is stepped until it is done or
// times out, by the thread that waits for it. If one thread makes all calls, it steps the
// activities of all others in turn, so that none waits for another.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_LIBRARY_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_LIBRARY_H_

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace hvd {

// What libhvd_mpi.so is built with: each MPI has its own binary interface.
#ifdef OPEN_MPI
inline constexpr const char* kMpiName = "Open MPI";
#else
inline constexpr const char* kMpiName = "MPICH";  // and its relatives, as Intel MPI
#endif

enum class Turn { kIdle, kMoved, kDone };

// An MPI operation done in steps.
class Activity {
 public:
  virtual ~Activity() = default;
  // Does what can be done now.
  virtual Result<Turn> Step() = 0;
  // "the allreduce over 3 hosts waits for rank 4": for the message of a timeout.
  virtual std::string Waiting() const = 0;
};

// Memory that MPI reads or writes. If MPI may still use it when no thread waits any more, it is
// kept until the process ends.
using MpiBuffer = std::unique_ptr<std::byte[]>;

// One per process, never destroyed.
class MpiLibrary {
 public:
  // Initialises MPI unless the application has done so. `for_communicator`: the application gave a
  // communicator, so it must have. `before_finalize`: called before the application finalises MPI;
  // may be null and given by a later call.
  static Result<MpiLibrary*> Start(bool for_communicator, bool one_thread,
                                   void (*before_finalize)() = nullptr);
  // Initialises MPI for an application that may use it and did not; makes no world of it.
  static Result<MpiFacts> StartBeside(bool one_thread);

  // Several threads may call MPI at once.
  bool threads_supported() const { return level_ == MPI_THREAD_MULTIPLE; }
  std::string description() const;

  // Steps the activity until it is done. kInProgress at the deadline; the error of Step if that
  // failed.
  Status Drive(Activity& activity, TimePoint deadline);
  // The same, as long as something moves: kInProgress after `idle_limit` without progress.
  Status DriveWhileMoving(Activity& activity, Duration idle_limit);
  // Makes MPI calls that do not block.
  void Run(const std::function<void()>& calls);

  // MPI may still use this memory, so it stays.
  void Keep(MpiBuffer buffer);
  // Something was left in progress, so MPI cannot be finalised. `what`: "a small message to rank
  // 3", for the log. The memory may be null.
  void GiveUpOn(MpiBuffer buffer, std::string_view what);

  // Finalises MPI if Start initialised it and nothing was given up.
  static void FinishIfStarted();

 private:
  struct Task;
  void Finish();
  void WatchForFinalize(void (*before_finalize)());
  static int OnFinalize(MPI_Comm comm, int key, void* value, void* library);
  MpiLibrary() = default;
  Status Initialise(bool one_thread);
  Status Adopt(bool one_thread);
  void ServeCalls();
  void Enqueue(Task& task);
  Status Carry(Task& task);

  int level_ = MPI_THREAD_SINGLE;
  bool ours_ = false;        // initialised here, so to be finalised here
  bool one_thread_ = false;  // thread_ makes all calls
  std::atomic<bool> given_up_{false};
  int process_ = 0;
  void (*before_finalize_)() = nullptr;

  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> tasks_ HVD_GUARDED_BY(mutex_);
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;  // Finish has begun
  std::vector<MpiBuffer> kept_ HVD_GUARDED_BY(mutex_);
  // The thread that initialised MPI and will finalise it, as MPI demands.
  std::thread thread_;
};

// "what: MPI_ERR_COUNT: invalid count argument"
Status MpiError(std::string_view what, int code);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_LIBRARY_H_
