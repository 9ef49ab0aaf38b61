// Starts a program: finds it like a shell, then vfork + exec without anything that a worker must
// not inherit.
#ifndef HVD_LAUNCHER_PROCESS_SPAWN_H_
#define HVD_LAUNCHER_PROCESS_SPAWN_H_

#include <sys/resource.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/process_host.h"

namespace hvd {

// PATH if the environment has none.
inline constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

struct FoundProgram {
  std::string path;  // empty: not found
  int error = 0;     // ENOENT, EACCES
};

// `program` with a slash is relative to `directory`; without, it is searched in `path`.
FoundProgram FindProgram(const std::string& program, const std::string& path,
                         const std::string& directory);

// One sentence that names the command and suggests one that would work.
std::string CannotStart(const SpawnRequest& request, int error);

// Whether a process must declare its tracer (PR_SET_PTRACER), from the text of
// /proc/sys/kernel/yama/ptrace_scope; empty: no Yama. Pure.
bool MustNameReader(std::string_view ptrace_scope);

// Closes every descriptor of this process except 0 to 2.
void CloseOtherDescriptors();

// The child's only descriptors.
struct SpawnDescriptors {
  int stdin_fd = -1;  // -1: /dev/null
  int stdout_fd = 1;
  int stderr_fd = 2;
  // SIGKILL when the spawning *thread* ends (PDEATHSIG), so spawn on the main thread only.
  bool dies_with_us = true;
  // The child's descriptor limit, if that of this process was raised.
  std::optional<rlimit> descriptor_limit = std::nullopt;
  // The cgroup2 folder to start in; -1: that of this process, also if the kernel does not support
  // it.
  int cgroup_fd = -1;
  int result_fd = -1;  // kResultDescriptor of the child; -1: none
  // Lets this process and its children (py-spy) read the child, if Yama allows that to ancestors
  // only.
  bool read_by_us = false;
};

// The child has its own session and default signal handlers. Reports errors of exec.
SpawnOutcome SpawnProgram(const SpawnRequest& request, const SpawnDescriptors& descriptors);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_SPAWN_H_
