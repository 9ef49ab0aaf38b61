// WorldJoiner: finds and joins the worlds of this process: as the environment says
// (launcher_detection.h), or over MPI if it says so or if hvd.init() was given a communicator or a
// subset of the ranks.
//
// A world over MPI forms like any other externally started one: MPI supplies which rank is on which
// host, an adopting agent on each host does the rest. The agent, and the memory shared through it,
// is kept as long as consecutive worlds have the same ranks.
//
// Not thread-safe except for segments() and the fork() hooks; the owner serialises calls.
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

// A world and how it was found; `mpi` is null if that was not MPI.
struct Membership {
  World world;
  std::unique_ptr<MpiWorld> mpi;
  // Set if MPI also started these ranks and was initialised here for the application's own use.
  std::optional<MpiFacts> mpi_beside = {};
};

// Hooks called when MPI is finalised or the process exits.
struct MpiHooks {
  void (*before_finalize)() = nullptr;  // the application finalises MPI: must leave the world
  void (*at_exit)(int code, void*) = nullptr;  // for on_exit: must leave the world and call Finish
};

class WorldJoiner {
 public:
  WorldJoiner(Result<DetectedLaunch> choice, MpiHooks hooks);

  // Replaces the choice by what the environment says now: a script may meanwhile have learned its
  // rank from torchrun or the store of init_process_group. A choice made by hvdrun or MPI is kept.
  void Update(Result<DetectedLaunch> choice);
  // Blocks until the world is complete.
  Result<Membership> Join(const InitOptions& options);
  // Of the last Join.
  Bootstrap& bootstrap() { return *bootstrap_; }
  SegmentSource& segments() { return segments_; }

  // MPI was initialised or used for the world of the last Join.
  bool uses_mpi() const { return plugin_.has_value(); }
  // The world of the last Join failed; MPI can form no other one then.
  void NoteFailure(std::string why);
  // At process exit: finalises MPI if we initialised it. Not after a failure or with a nonzero exit
  // code: MPI_Finalize would wait for ranks that wait for this one; mpirun ends them instead.
  void Finish(int code);
  // Around fork(), as in SharedHeap; CloseAfterFork is for the child, between the two calls, and
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
  uint32_t launched() const;  // number of ranks started together; 0: unknown
  bool IsEverybody(const std::vector<uint32_t>& ranks) const;
  Status CheckAsksForMpi(const InitOptions& options) const;
  Result<Membership> JoinAsStarted(const InitOptions& options);
  Result<Membership> JoinOverMpi(const InitOptions& options);
  Result<std::unique_ptr<MpiWorld>> OpenMpiWorld(const InitOptions& options, TimePoint deadline);
  static Status AgreeToGoOn(MpiWorld& world, const Status& own, TimePoint deadline);
  Status UseAgentOf(MpiWorld& world, TimePoint deadline);
  Status Use(std::string job, std::unique_ptr<Bootstrap> bootstrap);

  Result<DetectedLaunch> choice_;
  bool updated_ = false;  // bootstrap_ belongs to an earlier choice
  const MpiHooks hooks_;
  SegmentSwitch segments_;
  // Identifies the job that bootstrap_ joins: as the environment says, of one rank, or of the ranks
  // that first met in an MPI world.
  std::string job_;
  Mutex switching_;                       // held by whatever changes bootstrap_
  std::unique_ptr<Bootstrap> bootstrap_;  // null before the first Join if MPI decides
  std::string place_;                     // "1 of 2" in the worlds of an MPI job_
  std::optional<MpiPlugin> plugin_;
  std::string failure_;  // why no further world over MPI can form
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_WORLD_JOINER_H_
