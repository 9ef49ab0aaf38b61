// The hosts and slots that a scheduler allocated to this process's job, and the system access that
// the parsers of allocations need.
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
  // The text of a file; the error message follows the file's name: "cannot be opened".
  std::function<Result<std::string>(const std::string& path)> read_file;
  // Whether this program is on PATH, or at this absolute path.
  std::function<bool(const std::string& program)> has_program;
  std::function<uint32_t()> default_slots;  // of this machine
  // Returns the output of a program, within a few seconds; the error message follows the program's
  // name: "does not answer within 10 s". Null: run no program.
  std::function<Result<std::string>(const std::vector<std::string>& command)> ask = nullptr;
  // The names of all environment variables. Null: they cannot be listed.
  std::function<std::vector<std::string>()> variables = nullptr;

  // A variable that is set and not empty.
  std::optional<std::string> Text(const char* name) const {
    std::optional<std::string> value = env(name);
    return value && !value->empty() ? value : std::nullopt;
  }
};

// How to reach the other hosts of an allocation; kAuto and empty: SSH.
struct HostAccess {
  RemoteLauncher launcher = RemoteLauncher::kAuto;
  std::string rsh_agent;  // a command as for --rsh-agent

  bool operator==(const HostAccess&) const = default;
};

struct Allocation {
  std::string name;  // "Slurm job 4711"
  // In the scheduler's order, with slots. Empty: the scheduler lists no hosts, and `slots` are
  // those of this machine.
  std::vector<HostSpec> hosts;
  uint64_t slots = 0;          // of all hosts
  uint32_t least_hosts = 0;    // minimum for an elastic job; 0: fixed size
  std::string_view slots_are;  // what a slot stands for: "one per task"
  HostAccess access;
  // The scheduler's job id, and the command that prints its current hosts (slurm_job.h); empty:
  // none.
  std::string id, command;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_ALLOCATION_H_
