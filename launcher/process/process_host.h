// ProcessHost: starts the workers of one host, reads their output and ends them. Each exit is
// reported exactly once, after the worker's output or 200 ms after the exit, whichever is first: a
// grandchild may hold the pipe, and its later output still arrives. Killing applies to the whole
// process tree.
#ifndef HVD_LAUNCHER_PROCESS_PROCESS_HOST_H_
#define HVD_LAUNCHER_PROCESS_PROCESS_HOST_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/process_end.h"
#include "runtime/base/clock.h"

namespace hvd {

inline constexpr Duration kOutputAfterExit = std::chrono::milliseconds(200);

// Additional descriptors of a worker: one for its command, and those by which horovod.run() passes
// the function and gets the result (horovod/runner/run_task.py).
inline constexpr int kKeptDescriptor = 3, kFunctionDescriptor = 4, kResultDescriptor = 5;
// The memory for its commits (horovod/common/commit_store.py).
inline constexpr int kCommitsDescriptor = 6;

struct SpawnRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"; the worker gets exactly these
  std::string directory;
  std::vector<int> cpus = {};  // CPU affinity; empty: inherited
  int stdin_fd = -1;           // -1: /dev/null; not owned
  int kept_fd = -1;            // becomes kKeptDescriptor; -1: none; not owned
  std::string program = {};    // file to exec if not argv[0]; searched in the same way
  int function_fd = -1;        // becomes kFunctionDescriptor, with a pipe for the result
  int commits_fd = -1;         // becomes kCommitsDescriptor; not owned
};

struct SpawnOutcome {
  pid_t pid = 0;       // 0: not started
  int error = 0;       // errno of what failed
  std::string reason;  // one sentence, when not started
};

class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  // Bytes as they were written.
  virtual void OnOutput(uint32_t worker, OutputStream stream, std::string_view bytes) = 0;
  // End of file: the write end is closed in all processes.
  virtual void OnOutputEnd(uint32_t worker, OutputStream stream) = 0;
  virtual void OnExit(uint32_t worker, ProcessEnd end, TimePoint noticed) = 0;
};

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;
  // `worker` is the caller's number for it, not used before.
  virtual SpawnOutcome Spawn(uint32_t worker, const SpawnRequest& request) = 0;
  // Signals the worker's process group, unless it has exited.
  virtual void Signal(uint32_t worker, int signal) = 0;
  // SIGKILL to the worker, its session and its descendants.
  virtual void Kill(uint32_t worker) = 0;
  // While held, no output is read, so that workers block on full pipes.
  virtual void HoldOutput(bool hold) = 0;
  // True when every worker's output has ended.
  virtual bool OutputEnded() const = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROCESS_HOST_H_
