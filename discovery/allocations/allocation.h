// The hosts and slots that a scheduler gave to the job in which this process runs, and the
// questions of the readers of its allocation to the world.
#ifndef HVD_DISCOVERY_ALLOCATIONS_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_ALLOCATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/choices.h"
#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

struct AllocationFacts {
  // The value of an environment variable, or nothing when it is unset.
  std::function<std::optional<std::string>(const char* name)> env;
  // The text of a file; an error's message follows the file's name: "cannot be opened".
  std::function<Result<std::string>(const std::string& path)> read_file;
  // Whether this program is on PATH, or at this absolute path.
  std::function<bool(const std::string& program)> has_program;
  std::function<uint32_t()> default_slots;  // of this machine
  // Returns the output of a program, within a few seconds; an error's message follows the program's
  // name: "does not answer within 10 s". Null: no program is asked.
  std::function<Result<std::string>(const std::vector<std::string>& command)> ask = nullptr;

  // A variable that is set to something.
  std::optional<std::string> Text(const char* name) const {
    std::optional<std::string> value = env(name);
    return value && !value->empty() ? value : std::nullopt;
  }
};

// What reaches the other hosts of an allocation; kAuto and empty: SSH.
struct HostAccess {
  RemoteLauncher launcher = RemoteLauncher::kAuto;
  std::string rsh_agent;  // a command as for --rsh-agent

  bool operator==(const HostAccess&) const = default;
};

struct Allocation {
  std::string name;  // "Slurm job 4711"
  // In the scheduler's order, each with its slots. Empty: the scheduler names none, and `slots` are
  // those of this machine.
  std::vector<HostSpec> hosts;
  uint64_t slots = 0;          // of all hosts
  uint32_t least_hosts = 0;    // with which an elastic job goes on; 0: the job has a fixed size
  std::string_view slots_are;  // what a slot stands for: "one per task"
  HostAccess access;
  // The scheduler's number of the job, and the command that tells its hosts as they are now
  // (slurm_job.h); empty: nothing does.
  std::string id, command;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_ALLOCATION_H_
