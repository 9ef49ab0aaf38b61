#include "launcher/agent/environment/worker_env.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "launcher/process/process_host.h"
#include "launcher/process/recorder_folder.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr const char* kInherited = "inherited";
constexpr const char* kLauncher = "of the launcher in whose place it is";
constexpr const char* kLogin = "of the login on this host; -x wins";
constexpr const char* kSetting = "a setting of hvdrun";
constexpr const char* kGiven = "-x or --env-file";
constexpr const char* kSlot = "slot: wins over everything";
constexpr const char* kTorch = "slot, for torch.distributed";
constexpr const char* kAgent = "how the worker finds its agent";
constexpr const char* kStock = "for stock Horovod: wins over everything";
constexpr const char* kSecret = "HVD_JOB_KEY";

struct Variable {
  std::string value;
  const char* why;
};
using Variables = std::map<std::string, Variable, std::less<>>;

// Why a variable is not inherited, or nullptr: it describes another job or slot, or the shell from
// which hvdrun was started.
const char* WhyLeftOut(std::string_view name) {
  constexpr std::array<std::string_view, 26> kOtherSlot = {
      "HOROVOD_RANK",
      "HOROVOD_SIZE",
      "HOROVOD_LOCAL_RANK",
      "HOROVOD_LOCAL_SIZE",
      "HOROVOD_CROSS_RANK",
      "HOROVOD_CROSS_SIZE",
      "HOROVOD_HOSTNAME",
      "HOROVOD_CONTROLLER",
      "HOROVOD_CPU_OPERATIONS",
      "HOROVOD_GLOO_IFACE",
      "HOROVOD_ELASTIC",
      "HOROVOD_GLOO_RENDEZVOUS_ADDR",
      "HOROVOD_GLOO_RENDEZVOUS_PORT",
      "_HOROVOD_SECRET_KEY",
      "RANK",
      "WORLD_SIZE",
      "LOCAL_RANK",
      "LOCAL_WORLD_SIZE",
      "MASTER_ADDR",
      "MASTER_PORT",
      "GROUP_RANK",
      "NODE_RANK",
      "GROUP_WORLD_SIZE",
      "ROLE_RANK",
      "ROLE_WORLD_SIZE",
      "ROLE_NAME",
  };
  if (std::find(kOtherSlot.begin(), kOtherSlot.end(), name) != kOtherSlot.end())
    return "it belongs to a slot of another job";
  if (name.starts_with("HVD_") || name.starts_with("TORCHELASTIC_"))
    return "it belongs to another job";
  if (name == "OLDPWD") return "it belongs to the shell";
  return nullptr;
}

// The rank and size of the task as which hvdrun itself was started, by mpirun, jsrun and the like:
// a library that reads them would take every rank for this one.
bool IsOfOwnTask(std::string_view name) {
  if (name.starts_with("PMIX_MCA_")) return false;  // a parameter of the user's
  constexpr std::string_view kPrefixes[] = {"OMPI_COMM_WORLD_", "PMI_", "PMIX_", "JSM_",
                                            "MV2_COMM_WORLD_"};
  constexpr std::string_view kNames[] = {"MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                                         "PALS_RANKID",     "PALS_LOCAL_RANKID",
                                         "FLUX_TASK_RANK",  "FLUX_TASK_LOCAL_ID"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kNames, name) != std::ranges::end(kNames);
}

void Set(Variables& variables, std::string_view entry, const char* why) {
  size_t equals = entry.find('=');
  if (equals == std::string_view::npos || equals == 0) return;
  variables[std::string(entry.substr(0, equals))] = {std::string(entry.substr(equals + 1)), why};
}

// The variables that scripts of torchrun read beside the rank. Never TORCHELASTIC_USE_AGENT_STORE:
// with it rank 0 would expect the store of torchrun's agent at MASTER_ADDR and host none itself,
// and every script would hang.
void SetTorchrun(Variables& v, const StartJob& start, const Placement& p) {
  // Every host has a local rank 0, so its index among those is the host's number.
  const Placement& first = start.policy.ranks_change == 0 ? start.ranks.slots[0] : p;
  v["GROUP_RANK"] = {std::to_string(first.cross_rank), kTorch};
  v["NODE_RANK"] = {std::to_string(first.cross_rank), kTorch};
  v["GROUP_WORLD_SIZE"] = {std::to_string(first.cross_size), kTorch};
  v["ROLE_RANK"] = {std::to_string(p.rank), kTorch};
  v["ROLE_WORLD_SIZE"] = {std::to_string(start.ranks.size), kTorch};
  v["TORCHELASTIC_RUN_ID"] = {start.job_id, kTorch};
  v["TORCHELASTIC_RESTART_COUNT"] = {std::to_string(start.restarts.done), kTorch};
  v["TORCHELASTIC_MAX_RESTARTS"] = {std::to_string(start.restarts.most), kTorch};
}

void SetSlot(Variables& v, const StartJob& start, const Placement& p) {
  v["HOROVOD_RANK"] = {std::to_string(p.rank), kSlot};
  v["HOROVOD_SIZE"] = {std::to_string(start.ranks.size), kSlot};
  v["HOROVOD_LOCAL_RANK"] = {std::to_string(p.local_rank), kSlot};
  v["HOROVOD_LOCAL_SIZE"] = {std::to_string(p.local_size), kSlot};
  v["HOROVOD_CROSS_RANK"] = {std::to_string(p.cross_rank), kSlot};
  v["HOROVOD_CROSS_SIZE"] = {std::to_string(p.cross_size), kSlot};
  v["HOROVOD_HOSTNAME"] = {start.host, kSlot};
  if (start.policy.ranks_change != 0) v["HOROVOD_ELASTIC"] = {"1", kSlot};
  // Scripts read these two to find out whether they run under a launcher.
  v["HOROVOD_CONTROLLER"] = {"gloo", kSlot};
  v["HOROVOD_CPU_OPERATIONS"] = {"gloo", kSlot};
  v["RANK"] = {std::to_string(p.rank), kTorch};
  v["WORLD_SIZE"] = {std::to_string(start.ranks.size), kTorch};
  v["LOCAL_RANK"] = {std::to_string(p.local_rank), kTorch};
  v["LOCAL_WORLD_SIZE"] = {std::to_string(p.local_size), kTorch};
  SetTorchrun(v, start, p);
}

// If the variables say which task of Slurm hvdrun itself is.
void SetSlurmTask(Variables& v, const StartJob& start, const Placement& p) {
  const Placement& first = start.policy.ranks_change == 0 ? start.ranks.slots[0] : p;
  const std::pair<const char*, uint32_t> values[] = {{"SLURM_PROCID", p.rank},
                                                     {"SLURM_LOCALID", p.local_rank},
                                                     {"SLURM_NODEID", first.cross_rank}};
  for (const auto& [name, value] : values) {
    const auto variable = v.find(name);
    if (variable != v.end()) variable->second = {std::to_string(value), "the rank's own; -x wins"};
  }
}

// The login variables of this host instead of those of hvdrun's host.
void SetLogin(Variables& v, const HostLogin& login) {
  for (const std::string& name : login.absent) v.erase(name);
  for (const std::string& entry : login.variables) Set(v, entry, kLogin);
}

void SetMaster(Variables& v, const StartJob& start) {
  if (start.meeting.master_port == 0) return;
  v["MASTER_ADDR"] = {start.meeting.master_address, "this machine; -x MASTER_ADDR=... wins"};
  v["MASTER_PORT"] = {std::to_string(start.meeting.master_port),
                      "a free port; -x MASTER_PORT=... wins"};
}

// By default Gloo resolves the host's name, which may give a loopback address.
void SetInterface(Variables& v, const std::string& interface) {
  if (interface.empty()) return;
  for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    v.try_emplace(name,
                  Variable{interface, "the interface at which the other hosts reach this one"});
  }
}

// Many ranks that each start a thread per core would slow down the machine.
void SetThreads(Variables& v, const StartJob& start, uint32_t local_size,
                const WorkerShare& share) {
  constexpr std::string_view kThreads = "OMP_NUM_THREADS";
  if (start.share.omp_threads > 0) {
    v[std::string(kThreads)] = {std::to_string(start.share.omp_threads), "--omp-threads"};
  } else if (start.share.omp_threads == 0 && share.host_cores > 0 && !v.contains(kThreads)) {
    uint32_t cores =
        share.own_cores > 0 ? share.own_cores : std::max(1U, share.host_cores / local_size);
    if (share.quota_cores > 0)
      cores = std::min(cores, std::max(1U, share.quota_cores / local_size));
    v[std::string(kThreads)] = {std::to_string(cores), "its share of the cores (--omp-threads)"};
  }
}

// The value on one line, whatever it contains.
std::string OnOneLine(std::string_view value) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string line;
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      line.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    } else {
      line += c;
    }
  }
  return line;
}

// The variables that workers of stock Horovod read besides their slot. Gloo listens on one
// interface.
void SetStock(Variables& v, const std::string& rendezvous, const std::string& interface) {
  const size_t colon = rendezvous.rfind(':');
  v["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = {rendezvous.substr(0, colon), kStock};
  v["HOROVOD_GLOO_RENDEZVOUS_PORT"] = {rendezvous.substr(colon + 1), kStock};
  if (interface.empty()) return;
  for (const char* name : {"HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"})
    v.try_emplace(name, Variable{interface, "the interface at which ranks reach each other"});
}

// CUDA numbers GPUs by speed unless it is set to number them as nvidia-smi does.
void SetGpu(Variables& v, const StartJob& start, const std::string& gpu) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";
  const char* why =
      start.share.gpus == GpuVisibility::kNear ? "its GPU (--gpus near)" : "its GPU (--gpus one)";
  if (!gpu.empty()) v[std::string(kVisible)] = {gpu, why};
  if (!gpu.empty() || start.share.bind_to == BindTo::kGpu)
    v.try_emplace("CUDA_DEVICE_ORDER",
                  Variable{"PCI_BUS_ID", "so that GPUs have the numbers of nvidia-smi"});
}

// A job without stall detection has no recorder.
void SetRecorder(Variables& v, const WorkerLink::Recorder& recorder, uint32_t worker) {
  if (recorder.folder.empty()) return;
  const std::string stem = RecorderStem(recorder.folder, worker);
  for (const RecorderVariable& variable : RecorderVariables(recorder.version, stem)) {
    if (variable.also != nullptr && v.contains(variable.also)) continue;
    v.try_emplace(variable.name,
                  Variable{variable.value, "so that a hang names the collective; -x wins"});
  }
}

// How a worker with hvdrun's runtime finds its agent.
void SetAgent(Variables& v, const StartJob& start, uint32_t slot, const WorkerLink& link,
              const InstallPaths& paths) {
  v["HVD_AGENT"] = {link.agent_address, kAgent};
  v["HVD_SLOT"] = {std::to_string(slot), kAgent};
  v["HVD_JOB_KEY"] = {start.job_key, kAgent};
  if (start.trace != TraceMode::kOff)
    v["HVD_TIMELINE"] = {"launcher", "hvdrun writes the timeline"};
  v["HVD_RUNTIME"] = {paths.runtime, "the runtime of this installation"};
  Variable& python = v["PYTHONPATH"];
  python.value = python.value.empty() ? paths.python : paths.python + ":" + python.value;
  python.why = python.why == nullptr ? "the package of this installation"
                                     : "the package of this installation in front";
  const auto backend = v.find("HOROVOD_TORCH_BACKEND");
  if (backend != v.end() && backend->second.value == "hvd") {
    python.value = paths.startup + ":" + python.value;
    python.why = "the package of this installation in front, and what --torch-backend hvd starts";
  }
}

}  // namespace

ExplainedEnvironment ExplainWorkerEnvironment(const StartJob& start, uint32_t slot,
                                              const WorkerLink& link, const InstallPaths& paths,
                                              const WorkerShare& share) {
  ExplainedEnvironment explained;
  const Placement& placement = start.ranks.slots[slot];
  Variables v;
  const bool in_place = !link.launcher_environment.empty();  // of another launcher's process
  for (const std::string& entry : start.program.environment) {
    std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (const char* why = WhyLeftOut(name)) {
      explained.left_out.emplace_back(name, why);
    } else if (entry.find(kRecorderFolder) != entry.npos && name.starts_with("TORCH_")) {
      explained.left_out.emplace_back(name, "it belongs to another job");
    } else if (!in_place && IsOfOwnTask(name)) {
      explained.left_out.emplace_back(name, "it belongs to the task that hvdrun itself is");
    } else {
      Set(v, entry, kInherited);
    }
  }
  for (const std::string& entry : link.launcher_environment) {
    if (!WhyLeftOut(std::string_view(entry).substr(0, entry.find('=')))) Set(v, entry, kLauncher);
  }
  SetLogin(v, link.login);
  if (!in_place) SetSlurmTask(v, start, placement);
  SetThreads(v, start, placement.local_size, share);
  SetMaster(v, start);
  SetInterface(v, link.interface);
  v["PYTHONUNBUFFERED"] = {"1", "so that output comes at once"};
  for (const std::string& entry : start.program.settings) Set(v, entry, kSetting);
  for (const std::string& entry : start.program.given) Set(v, entry, kGiven);
  SetRecorder(v, link.recorder,
              start.ranks.workers.empty() ? placement.rank : start.ranks.workers[slot]);
  SetGpu(v, start, share.gpu);
  SetSlot(v, start, placement);
  if (!link.launcher_environment.empty()) v["HOROVOD_CONTROLLER"] = {"mpi", kSlot};
  v["HVD_JOB_ID"] = {link.job_id, kAgent};
  if (!start.program.function.empty())
    v["HVD_FUNCTION_FDS"] = {Format("{},{}", kFunctionDescriptor, kResultDescriptor),
                             "the function of horovod.run(), and where its result goes"};
  if (!link.commits.empty())
    v["HVD_COMMITS"] = {link.commits, "the memory in which commits are kept"};
  if (!link.job_place.empty())
    v["HVD_JOB_PLACE"] = {link.job_place, "so that nothing is left of a job that is killed"};
  if (start.meeting.rendezvous.empty()) {
    SetAgent(v, start, slot, link, paths);
  } else {
    SetStock(v, start.meeting.rendezvous, link.interface);
  }
  // Only if the mask does not show it: a command such as taskset may still narrow the mask of an
  // unbound worker.
  if (share.quota_cores > 0)
    v["HVD_HOST_CORES"] = {std::to_string(share.quota_cores),
                           "the CPU quota that its host's ranks share"};
  else if (share.own_cores > 0)
    v["HVD_HOST_CORES"] = {std::to_string(share.host_cores),
                           "the cores that its host's ranks share"};
  for (auto& [name, variable] : v) {
    explained.variables.push_back({name, std::move(variable.value), variable.why});
  }
  return explained;
}

std::vector<std::string> WorkerEnvironment(const StartJob& start, uint32_t slot,
                                           const WorkerLink& link, const InstallPaths& paths,
                                           const WorkerShare& share) {
  std::vector<std::string> environment;
  for (auto& variable : ExplainWorkerEnvironment(start, slot, link, paths, share).variables) {
    environment.push_back(variable.name + "=" + variable.value);
  }
  return environment;
}

std::string PrintEnvText(const ExplainedEnvironment& environment) {
  std::string text =
      "# The environment of rank 0. Later wins: inherited, hvdrun's defaults, settings, "
      "--env-file, -x, slot.\n";
  for (const ExplainedVariable& variable : environment.variables) {
    bool secret = variable.name == kSecret;
    text += variable.name + "=" + (secret ? "..." : OnOneLine(variable.value)) + "  # " +
            (secret ? "a secret of the job, not shown" : variable.why) + "\n";
  }
  text +=
      "# with several hosts also, unless they are set: GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME, "
      "the interface at which the other hosts reach this one\n";
  text +=
      "# with PyTorch 2.5 and newer also, unless they are set: the variables of its flight "
      "recorder, whose dumps explain a hang\n";
  for (const auto& [name, why] : environment.left_out) {
    text += "# not passed on: " + OnOneLine(name) + ", because " + why + "\n";
  }
  return text;
}

}  // namespace hvd
