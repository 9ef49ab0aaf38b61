// ProcessHost: starts, feeds on and ends the workers of one host. Its exits are reported exactly
// once, after the worker's output or 200 ms after the exit, whichever is first: a grandchild may
// hold the pipe, and its later output still arrives. Killing takes the whole tree.
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

// More descriptors that a worker may be given: one that its command finds, and those with which
// horovod.run() gives it a function and gets the result (horovod/runner/run_task.py).
inline constexpr int kKeptDescriptor = 3, kFunctionDescriptor = 4, kResultDescriptor = 5;
// The memory in which it keeps commits (horovod/common/commit_store.py).
inline constexpr int kCommitsDescriptor = 6;

struct SpawnRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"; the worker gets exactly these
  std::string directory;
  std::vector<int> cpus = {};  // that the worker is kept on; empty: as inherited
  int stdin_fd = -1;           // -1: /dev/null; not owned
  int kept_fd = -1;            // that the worker has as kKeptDescriptor; -1: none; not owned
  std::string program = {};    // that is started, where it is not argv[0]; found in the same way
  int function_fd = -1;  // that the worker has as kFunctionDescriptor, beside a pipe for its result
  int commits_fd = -1;   // that the worker has as kCommitsDescriptor; not owned
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
  // Nobody holds the writing end any more.
  virtual void OnOutputEnd(uint32_t worker, OutputStream stream) = 0;
  virtual void OnExit(uint32_t worker, ProcessEnd end, TimePoint noticed) = 0;
};

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;
  // `worker` is the caller's number for it, not used before.
  virtual SpawnOutcome Spawn(uint32_t worker, const SpawnRequest& request) = 0;
  // To the worker's process group. Nothing happens when it has exited.
  virtual void Signal(uint32_t worker, int signal) = 0;
  // SIGKILL to the worker, its session and its descendants.
  virtual void Kill(uint32_t worker) = 0;
  // While held, no more output is read: the workers feel it at their pipes.
  virtual void HoldOutput(bool hold) = 0;
  // True when every worker's output has ended.
  virtual bool OutputEnded() const = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROCESS_HOST_H_
