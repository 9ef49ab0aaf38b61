// The functions that libhvd_mpi.so provides to libhvd.so, and how to load it. Needs no MPI header.
//
// Both sides are built together, so C++ types pass. The library is never unloaded.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_PLUGIN_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_PLUGIN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// The ranks of one communicator, and the calls that they can make before anything else exists. The
// calls are collective: every rank of the world makes them in the same order. Any thread, one at a
// time.
class MpiWorld {
 public:
  virtual ~MpiWorld() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // Host and local rank of each rank, by rank: according to MPI, those on one host can share
  // memory.
  virtual const std::vector<RankPlace>& places() const = 0;
  // Random, the same on all ranks, unique to this world: distinguishes sub-worlds of one job, and
  // may serve as their secret.
  virtual const std::string& id() const = 0;
  // "Open MPI v4.1.4, MPI_THREAD_MULTIPLE"
  virtual std::string description() const = 0;
  // True if several threads may call MPI at once.
  virtual bool threads_supported() const = 0;

  // Every rank's value, by rank. Values may differ in length; kMaxMpiValue bytes at most.
  virtual Result<std::vector<std::string>> Exchange(const std::string& value,
                                                    TimePoint deadline) = 0;
  // The InterHostComm of this world; only leaders need to call it. At most one at a time; the world
  // outlives it.
  virtual Result<std::unique_ptr<InterHostComm>> OpenInterHostComm() = 0;
};

inline constexpr size_t kMaxMpiValue = 64 * 1024;

struct MpiJoinOptions {
  // An MPI_Comm* of the application, whose ranks form the world; null: all ranks started together.
  const void* comm = nullptr;
  // Instead of a communicator: these of the ranks started together, ascending, the same on each of
  // them.
  std::span<const uint32_t> ranks;
  // The number of ranks started together, if known; 0: use the MPI launcher's variables.
  uint32_t launched = 0;
  // All MPI calls from one thread, whatever the library supports (HOROVOD_MPI_THREADS_DISABLE).
  bool one_thread = false;
  TimePoint deadline;
  // The interval of messages about a wait for the other ranks.
  Duration remind = std::chrono::seconds(60);
  // Called before the application finalises MPI, so that the world is left first. May be null.
  void (*before_finalize)() = nullptr;
};

// MPI in this process, whatever transport its world uses.
struct MpiFacts {
  uint32_t size = 0;               // ranks of MPI_COMM_WORLD
  bool threads_supported = false;  // several threads may call MPI at once
};

struct MpiPlugin {
  // Initialises MPI unless it is initialised, without a world; called by all ranks started
  // together. False: `status` says why.
  using Start = bool (*)(bool one_thread, MpiFacts* facts, Status* status);
  // Initialises MPI unless the application has; called by every rank of the communicator. Null:
  // `status` says why.
  using Join = MpiWorld* (*)(const MpiJoinOptions* options, Status* status);
  // At the end of the process, once every world is gone: finalises MPI if these initialised it and
  // nothing has failed since. MPI is unusable afterwards. Does nothing in a forked child.
  using Finish = void (*)();

  Start start = nullptr;
  Join join = nullptr;
  Finish finish = nullptr;
};

inline constexpr char kMpiStartName[] = "hvd_mpi_start";
inline constexpr char kMpiJoinName[] = "hvd_mpi_join";
inline constexpr char kMpiFinishName[] = "hvd_mpi_finish";

// Loads libhvd_mpi.so from `folder`, or from the folder of the object that holds this function.
// kUnsupported with the reason if it or its MPI library is missing.
Result<MpiPlugin> LoadMpiPlugin(const std::string& folder = "");

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_PLUGIN_H_
