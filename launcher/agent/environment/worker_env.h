// The environment of a worker: inherited variables, those for its connection to the agent, and
// those that scripts read. Pure.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_WORKER_ENV_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_WORKER_ENV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/agent/environment/host_login.h"
#include "launcher/agent/environment/torch_recorder.h"
#include "launcher/channels/bundle/install_paths.h"
#include "launcher/wire/messages.h"

namespace hvd {

// How this worker reaches its agent.
struct WorkerLink {
  std::string agent_address;  // abstract unix name
  std::string job_id;
  std::string job_place = {};  // JobPlaceText; empty: unknown
  // The interface with the address that other hosts reached; empty: no other hosts.
  std::string interface = {};
  // "NAME=value", of the launcher whose place the worker has (launcher/external/places).
  std::vector<std::string> launcher_environment = {};
  // Descriptor of the memory for commits, with device and inode of its file: "6,1,4711"; empty:
  // none.
  std::string commits = {};
  HostLogin login = {};  // for hosts other than hvdrun's
  // PyTorch's flight recorder in the workers.
  struct Recorder {
    std::string folder = {};  // of its pipes and dumps; empty: do not configure
    TorchVersion version = {};
  };
  Recorder recorder = {};
};

// A worker's cores and GPU.
struct WorkerShare {
  uint32_t host_cores = 0;  // of all workers of its agent; 0: unknown
  uint32_t own_cores = 0;   // its share of the cores it is bound to; 0: not bound
  std::string gpu = {};     // an entry of CUDA_VISIBLE_DEVICES; empty: all visible
  // CPU quota of the cgroup for all workers; 0: not the limiting factor.
  uint32_t quota_cores = 0;
};

struct ExplainedVariable {
  std::string name, value;
  const char* why;  // "inherited", "slot" ...
};

struct ExplainedEnvironment {
  std::vector<ExplainedVariable> variables;                   // by name
  std::vector<std::pair<std::string, const char*>> left_out;  // names that are not inherited
};

// Precedence: slot values, -x, --env-file, settings, inherited.
ExplainedEnvironment ExplainWorkerEnvironment(const StartJob& start, uint32_t slot,
                                              const WorkerLink& link, const InstallPaths& paths,
                                              const WorkerShare& share);

// "NAME=value" for the worker in slot `slot` of the agent.
std::vector<std::string> WorkerEnvironment(const StartJob& start, uint32_t slot,
                                           const WorkerLink& link, const InstallPaths& paths,
                                           const WorkerShare& share);

// The output of --print-env: one variable with its reason per line, then the rules.
std::string PrintEnvText(const ExplainedEnvironment& environment);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_WORKER_ENV_H_
