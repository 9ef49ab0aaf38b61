// The environment of a worker: the variables that it inherits, those by which it finds its agent,
// and those that scripts look for. Pure.
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
  std::string job_place = {};  // JobPlaceText; empty: not known
  // The interface with the address that was proven to the other hosts; empty: there are none.
  std::string interface = {};
  // "NAME=value", of the launcher in whose place the worker is (launcher/external/places).
  std::vector<std::string> launcher_environment = {};
  // The descriptor of the memory for commits, and the device and the number of its file:
  // "6,1,4711"; empty: none are kept.
  std::string commits = {};
  HostLogin login = {};  // on another host than hvdrun's
  // Of PyTorch in the workers.
  struct Recorder {
    std::string folder = {};  // of its pipes and dumps; empty: it is left alone
    TorchVersion version = {};
  };
  Recorder recorder = {};
};

// The cores that it may use, and its GPU.
struct WorkerShare {
  uint32_t host_cores = 0;  // together with the other workers of its agent; 0: not known
  uint32_t own_cores = 0;   // its share of those it is bound to; 0: not bound
  std::string gpu = {};     // an entry of CUDA_VISIBLE_DEVICES; empty: it sees all
  // The CPUs whose time its cgroup allows to all of them; 0: fewer cores than that limit it.
  uint32_t quota_cores = 0;
};

struct ExplainedVariable {
  std::string name, value;
  const char* why;  // "inherited", "slot" ...
};

struct ExplainedEnvironment {
  std::vector<ExplainedVariable> variables;                   // by name
  std::vector<std::pair<std::string, const char*>> left_out;  // names of what is not inherited
};

// Slot values win over what the user gave (--env-file, then -x), that over settings, settings over
// inheritance.
ExplainedEnvironment ExplainWorkerEnvironment(const StartJob& start, uint32_t slot,
                                              const WorkerLink& link, const InstallPaths& paths,
                                              const WorkerShare& share);

// "NAME=value" for the worker in slot `slot` of the agent.
std::vector<std::string> WorkerEnvironment(const StartJob& start, uint32_t slot,
                                           const WorkerLink& link, const InstallPaths& paths,
                                           const WorkerShare& share);

// The output of --print-env: the variables with their reasons, one a line, then the rules.
std::string PrintEnvText(const ExplainedEnvironment& environment);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_WORKER_ENV_H_
