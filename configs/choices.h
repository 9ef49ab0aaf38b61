// The settings that are one of several choices. Their words stand in the settings table alone.
#ifndef HVD_CONFIGS_CHOICES_H_
#define HVD_CONFIGS_CHOICES_H_

#include <cstdint>

namespace hvd {

// What to do with the key of a host that ssh does not know.
enum class HostKeys : uint8_t { kStrict, kAcceptNew };

// What speaks SSH.
enum class SshClient : uint8_t { kAuto, kProgram };

// Whether the allocation of a scheduler names hosts and -np.
enum class AllocationUse : uint8_t { kAuto, kNever };

// What starts the agents on other hosts. kNodes is no choice of a user: the other nodes dial this
// one (discovery/allocations/node_group.h).
enum class RemoteLauncher : uint8_t { kAuto, kSsh, kSrun, kBlaunch, kNodes };

// Its word for --launcher.
constexpr const char* NameOf(RemoteLauncher launcher) {
  switch (launcher) {
    case RemoteLauncher::kSsh: return "ssh";
    case RemoteLauncher::kSrun: return "srun";
    case RemoteLauncher::kBlaunch: return "blaunch";
    case RemoteLauncher::kNodes: return "nodes";
    case RemoteLauncher::kAuto: break;
  }
  return "auto";
}

// When another host is sent hvdrun: where this build is not installed, never (then any build of
// this version will do), or even where it is.
enum class BundleUse : uint8_t { kAuto, kNever, kAlways };

// Whether hosts that do not reach each other are relayed.
enum class RelayUse : uint8_t { kAuto, kNever };

// What starts the ranks: hvdrun itself (kAuto, kGloo), mpirun or jsrun.
enum class Controller : uint8_t { kAuto, kGloo, kMpi, kJsrun };

// How a job goes on with other ranks. kInProcess: survivors keep their processes and form the next
// generation. kInJob: all workers are started again together. kAuto: in process once a rank has
// called hvd.init(), because the script forms generations; else in job.
enum class RestartMode : uint8_t { kAuto, kInProcess, kInJob };

// Which workers read what hvdrun reads; the others have /dev/null. This and the next two travel as
// these numbers.
enum class StdinTo : uint8_t { kNone = 0, kRank0 = 1, kAll = 2 };

// Which cores a worker may use.
enum class BindTo : uint8_t { kNone = 0, kCore = 1, kNuma = 2, kGpu = 3 };

// Which GPUs of its host a worker sees.
enum class GpuVisibility : uint8_t { kAll = 0, kOne = 1, kNear = 2 };

// Which events a timeline keeps where a limit does not hold all.
enum class TimelineKeep : uint8_t { kFirst, kLast };

// Whether output has colours; kAuto: where a person reads it.
enum class ColorUse : uint8_t { kAuto, kAlways, kNever };

}  // namespace hvd

#endif  // HVD_CONFIGS_CHOICES_H_
