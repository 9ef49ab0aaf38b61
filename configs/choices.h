// Enumerations of settings. Their names are in the settings table only.
#ifndef HVD_CONFIGS_CHOICES_H_
#define HVD_CONFIGS_CHOICES_H_

#include <cstdint>

namespace hvd {

// What to do with an unknown SSH host key.
enum class HostKeys : uint8_t { kStrict, kAcceptNew };

// The SSH client.
enum class SshClient : uint8_t { kAuto, kProgram };

// Whether hosts and -np are taken from a scheduler's allocation.
enum class AllocationUse : uint8_t { kAuto, kNever };

// How agents on other hosts are started. kNodes cannot be set by the user: the other nodes dial
// this one (discovery/allocations/node_group.h).
enum class RemoteLauncher : uint8_t { kAuto, kSsh, kSrun, kBlaunch, kNodes };

// Its name for --launcher.
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

// When hvdrun is sent to another host: if this build is not installed there, never (then any build
// of this version is accepted), or always.
enum class BundleUse : uint8_t { kAuto, kNever, kAlways };

// Whether connections between hosts that cannot reach each other are relayed.
enum class RelayUse : uint8_t { kAuto, kNever };

// What starts the ranks: hvdrun itself (kAuto, kGloo), mpirun or jsrun.
enum class Controller : uint8_t { kAuto, kGloo, kMpi, kJsrun };

// How a job continues after its ranks change. kInProcess: survivors keep their processes and form
// the next generation. kInJob: all workers are restarted. kAuto: in process once a rank has called
// hvd.init(); else in job.
enum class RestartMode : uint8_t { kAuto, kInProcess, kInJob };

// Which workers get hvdrun's stdin; the others have /dev/null. The numbers of this and the next two
// are part of the protocol.
enum class StdinTo : uint8_t { kNone = 0, kRank0 = 1, kAll = 2 };

// Which cores a worker may use.
enum class BindTo : uint8_t { kNone = 0, kCore = 1, kNuma = 2, kGpu = 3 };

// Which GPUs of its host a worker sees.
enum class GpuVisibility : uint8_t { kAll = 0, kOne = 1, kNear = 2 };

// Which events a timeline keeps when it exceeds its limit.
enum class TimelineKeep : uint8_t { kFirst, kLast };

// Whether output has colours; kAuto: on a terminal.
enum class ColorUse : uint8_t { kAuto, kAlways, kNever };

}  // namespace hvd

#endif  // HVD_CONFIGS_CHOICES_H_
