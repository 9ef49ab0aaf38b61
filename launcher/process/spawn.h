// Starting one program: finding it as a shell would, and vfork + exec with everything a worker must
// not inherit undone.
#ifndef HVD_LAUNCHER_PROCESS_SPAWN_H_
#define HVD_LAUNCHER_PROCESS_SPAWN_H_

#include <sys/resource.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/process_host.h"

namespace hvd {

// Where programs are looked for when the environment has no PATH.
inline constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

struct FoundProgram {
  std::string path;  // empty when there is none
  int error = 0;     // ENOENT, EACCES
};

// `program` with a slash is taken relative to `directory`, one without is looked up in `path`.
FoundProgram FindProgram(const std::string& program, const std::string& path,
                         const std::string& directory);

// One sentence that names the command and one that would work.
std::string CannotStart(const SpawnRequest& request, int error);

// Whether a process has to name who may read it (PR_SET_PTRACER), by the text of
// /proc/sys/kernel/yama/ptrace_scope; empty: there is no Yama. Pure.
bool MustNameReader(std::string_view ptrace_scope);

// Closes every descriptor of this process but 0 to 2.
void CloseOtherDescriptors();

// The descriptors that the child gets; it gets no other.
struct SpawnDescriptors {
  int stdin_fd = -1;  // -1: /dev/null
  int stdout_fd = 1;
  int stderr_fd = 2;
  // SIGKILL when the spawning *thread* ends (PDEATHSIG): so spawn on the main thread only.
  bool dies_with_us = true;
  // The limit of open descriptors that the child is to have, when ours was raised.
  std::optional<rlimit> descriptor_limit = std::nullopt;
  // A folder of cgroup2 to be born in; -1: ours. Where the kernel cannot, the child is born in
  // ours.
  int cgroup_fd = -1;
  int result_fd = -1;  // kResultDescriptor of the child; -1: none
  // The child may be read by us and what we start (py-spy), where Yama allows that to parents alone
  // and py-spy is a sibling of the child.
  bool read_by_us = false;
};

// The child has its own session and default signals. An error of exec comes back.
SpawnOutcome SpawnProgram(const SpawnRequest& request, const SpawnDescriptors& descriptors);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_SPAWN_H_
