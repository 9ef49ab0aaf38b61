// WorldJoiner: which worlds this process can get into, and how: by what the environment says
// (launcher_detection.h), or by MPI, when it says so, or when hvd.init() was given a communicator
// or a part of the ranks.
//
// A world over MPI meets like any other one that somebody else started: MPI tells who is on which
// host, an adopting agent on each host does the rest. The agent, and with it the memory that is
// shared through it, stays while the ranks of the worlds stay the same.
//
// Not thread-safe but for segments() and the calls for fork(); its owner serialises.
#ifndef HVD_RUNTIME_API_WORLD_JOINER_H_
#define HVD_RUNTIME_API_WORLD_JOINER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/init_options.h"
#include "runtime/api/segment_switch.h"
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/launcher_detection.h"

namespace hvd {

// A world, and the means by which it was found; `mpi` is null where that was not MPI.
struct Membership {
  World world;
  std::unique_ptr<MpiWorld> mpi;
  // MPI started these ranks too, and is initialised here for the application's own use: nothing
  // where it did not, or could not be.
  std::optional<MpiFacts> mpi_beside = {};
};

// The calls that the process has to make when MPI comes to its end.
struct MpiHooks {
  void (*before_finalize)() = nullptr;         // the application finalises MPI: leaves the world
  void (*at_exit)(int code, void*) = nullptr;  // for on_exit: leaves the world, and calls Finish
};

class WorldJoiner {
 public:
  WorldJoiner(Result<DetectedLaunch> choice, MpiHooks hooks);

  // What the environment says now: a script may have learned its place since, from torchrun or from
  // the store of init_process_group. What hvdrun or MPI has said stays.
  void Update(Result<DetectedLaunch> choice);
  // Blocks until the world is complete.
  Result<Membership> Join(const InitOptions& options);
  // That of the last Join.
  Bootstrap& bootstrap() { return *bootstrap_; }
  SegmentSource& segments() { return segments_; }

  // MPI was initialised, or used, for the world of the last Join.
  bool uses_mpi() const { return plugin_.has_value(); }
  // The world of the last Join did not end in peace. MPI cannot form another one then.
  void NoteFailure(std::string why);
  // At the end of the process: finalises MPI if that is ours to do. Not after a failure, and not in
  // a process that ends with another code than 0: MPI_Finalize would wait for ranks that wait for
  // this one, and mpirun ends them instead.
  void Finish(int code);
  // Around fork(), as in SharedHeap; CloseAfterFork is for the child, between the two, and
  // async-signal-safe.
  void LockForFork() HVD_ACQUIRE(switching_) { switching_.lock(); }
  void UnlockAfterFork() HVD_RELEASE(switching_) { switching_.unlock(); }
  void CloseAfterFork();

 private:
  const ExternalRank* external() const;
  bool StartedByOpenMpi() const;
  Status LoadPlugin();
  void FinishAtExit() const;
  std::optional<MpiFacts> StartMpiBeside(const World& world);
  uint32_t launched() const;  // ranks that were started together; 0: not known
  bool IsEverybody(const std::vector<uint32_t>& ranks) const;
  Status CheckAsksForMpi(const InitOptions& options) const;
  Result<Membership> JoinAsStarted(const InitOptions& options);
  Result<Membership> JoinOverMpi(const InitOptions& options);
  Result<std::unique_ptr<MpiWorld>> OpenMpiWorld(const InitOptions& options, TimePoint deadline);
  static Status AgreeToGoOn(MpiWorld& world, const Status& own, TimePoint deadline);
  Status UseAgentOf(MpiWorld& world, TimePoint deadline);
  Status Use(std::string job, std::unique_ptr<Bootstrap> bootstrap);

  Result<DetectedLaunch> choice_;
  bool updated_ = false;  // bootstrap_ is that of an earlier choice
  const MpiHooks hooks_;
  SegmentSwitch segments_;
  // Whose worlds bootstrap_ leads to: as the environment says, of one rank, or of those that first
  // met in an MPI world.
  std::string job_;
  Mutex switching_;                       // what changes bootstrap_ holds it
  std::unique_ptr<Bootstrap> bootstrap_;  // null before the first Join where MPI decides
  std::string place_;                     // "1 of 2" in the worlds of an MPI job_
  std::optional<MpiPlugin> plugin_;
  std::string failure_;  // why there can be no world over MPI any more
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_WORLD_JOINER_H_
