#include "launcher/doctor/findings/host_findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/channels/bundle/remote_script.h"
#include "launcher/doctor/report/doctor_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {

void FindingGroups::Add(Severity severity, const char* kind, const OfHost& say,
                        const std::string& fix) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const HostReport& host : hosts_) {
    std::string what = say(host);
    if (what.empty()) continue;
    auto known = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == what; });
    if (known == groups.end()) known = groups.insert(groups.end(), {what, {}});
    known->second.push_back(host.name);
  }
  for (auto& [what, hosts] : groups) {
    findings_.push_back({severity, kind, std::move(hosts), what, fix});
  }
}

void FindingGroups::AddFacts(const char* kind, const OfFacts& say, const std::string& fix,
                             Severity severity) {
  Add(
      severity, kind,
      [&](const HostReport& host) { return host.examined ? say(host.facts) : std::string(); }, fix);
}

void FindingGroups::AddDifferences(const char* kind, const std::string& name, const OfFacts& value,
                                   const std::string& fix) {
  std::map<std::string, size_t> counts;
  std::string usual;
  for (const HostReport& host : hosts_) {
    std::string text = host.examined ? value(host.facts) : "";
    if (text.empty()) continue;
    size_t count = ++counts[text];
    if (usual.empty() || count > counts[usual]) usual = text;
  }
  if (counts.size() < 2) return;
  AddFacts(
      kind,
      [&](const HostFacts& facts) {
        std::string text = value(facts);
        return text.empty() || text == usual ? ""
                                             : name + " " + text + ", where most have " + usual;
      },
      fix);
}

namespace {

// The sentence includes the advice.
void FindTroubles(FindingGroups& groups) {
  groups.Add(
      Severity::kError, "host", [](const HostReport& host) { return host.trouble; }, "");
}

void FindInstallations(FindingGroups& groups) {
  groups.Add(
      Severity::kWarning, "installation", [](const HostReport& host) { return host.skipped; },
      kSkipAdvice);
}

void FindExaminations(const DoctorReport& report, FindingGroups& groups) {
  if (report.interrupted) return;
  groups.Add(
      Severity::kWarning, "examination",
      [](const HostReport& host) -> std::string {
        if (!host.trouble.empty() && !host.examined) return "";
        if (!host.examined) return "did not say what it has";
        if (host.facts.complete) return "";
        return host.facts.directory.empty()
                   ? "a file system did not answer: its home or the working directory"
                   : "did not say everything in time";
      },
      "is the host overloaded, or a file server away?");
}

void FindPython(const DoctorReport& report, FindingGroups& groups) {
  groups.AddFacts(
      "python", [](const HostFacts& facts) { return facts.python_trouble; },
      "install " + report.interpreter +
          " there, or put the command to examine behind --: hvdrun doctor -- python3 train.py");
  groups.AddDifferences(
      "python", "has Python", [](const HostFacts& facts) { return facts.python_version; },
      "use the same Python everywhere; what differs is often found only while training");
  groups.AddDifferences(
      "python", "has Python at", [](const HostFacts& facts) { return facts.python_path; },
      "a virtual environment that is active here must be at the same path there");
  std::set<std::string> names;
  for (const HostReport& host : report.hosts) {
    for (const auto& [name, version] : host.facts.libraries) names.insert(name);
  }
  for (const std::string& name : names) {
    groups.AddDifferences(
        "library", "has " + name,
        [&](const HostFacts& facts) -> std::string {
          if (facts.python_version.empty()) return "";
          auto found = facts.libraries.find(name);
          return found == facts.libraries.end() ? "nowhere" : found->second;
        },
        "install the same version everywhere");
  }
}

void FindDirectories(const DoctorReport& report, FindingGroups& groups) {
  groups.AddFacts(
      "directory",
      [&](const HostFacts& facts) {
        return facts.directory.empty() || facts.directory == "ok"
                   ? ""
                   : "the working directory " + report.directory +
                         " cannot be used there: " + facts.directory;
      },
      "start from a directory that all hosts share, or copy it there", Severity::kError);
}

void FindClocks(const DoctorLimits& limits, FindingGroups& groups) {
  groups.Add(
      Severity::kWarning, "clock",
      [&](const HostReport& host) -> std::string {
        if (!host.clock) return "";
        Duration off = host.clock->skew < Duration::zero() ? -host.clock->skew : host.clock->skew;
        if (off - host.clock->uncertainty <= limits.clock) return "";
        return "its clock is " + TimeText(off) +
               (host.clock->skew < Duration::zero() ? " behind" : " ahead") + " of ours";
      },
      "set up time synchronisation there (chrony, systemd-timesyncd); logs, certificates and "
      "shared file systems suffer");
}

// "GPU 3 has 2 ...; GPU 5 has 1 ...", of those for which `says` says something.
std::string OfEachGpu(const HostFacts& facts, std::string (*says)(const GpuFaults&)) {
  std::string text;
  for (const auto& [number, faults] : facts.gpu_faults) {
    const std::string trouble = says(faults);
    if (!trouble.empty()) text += Format("{}GPU {} {}", text.empty() ? "" : "; ", number, trouble);
  }
  return text;
}

void FindFaultsOfGpus(FindingGroups& groups) {
  const auto add = [&](Severity severity, std::string (*says)(const GpuFaults&), const char* cure) {
    groups.AddFacts(
        "gpu", [says](const HostFacts& facts) { return OfEachGpu(facts, says); }, cure, severity);
  };
  add(
      Severity::kError,
      [](const GpuFaults& gpu) -> std::string {
        if (gpu.memory == "broken") return "has broken memory that could not be replaced";
        return gpu.mode == "prohibited" ? "refuses all work (compute mode Prohibited)" : "";
      },
      "leave the GPU out with CUDA_VISIBLE_DEVICES; an administrator has to look at it");
  add(
      Severity::kWarning,
      [](const GpuFaults& gpu) -> std::string {
        if (gpu.ecc_errors == 0 && gpu.memory != "reset") return "";
        std::string text = gpu.ecc_errors == 0
                               ? "has bad memory"
                               : "has had " + Counted(gpu.ecc_errors, "uncorrected memory error",
                                                      "uncorrected memory errors");
        return gpu.memory == "reset" ? text + " and replaces the bad rows at its next reset" : text;
      },
      "results may be wrong and programs may die there: have the GPU reset (nvidia-smi "
      "--gpu-reset)");
  add(
      Severity::kWarning,
      [](const GpuFaults& gpu) -> std::string {
        return gpu.slowed.empty() ? "" : "is slowed down by " + gpu.slowed;
      },
      "the slowest GPU sets the pace of all: look at fans, air and power supply");
  add(
      Severity::kWarning,
      [](const GpuFaults& gpu) -> std::string {
        if (gpu.processes.empty()) return "";
        std::string pids;
        for (const uint32_t pid : gpu.processes)
          pids += (pids.empty() ? "" : ", ") + std::to_string(pid);
        return "is in use by " +
               std::string(gpu.processes.size() == 1 ? "process " : "processes ") + pids;
      },
      "wait for them, end them, or leave the GPU out with CUDA_VISIBLE_DEVICES");
}

// "eth,ib0" are prefixes, "=eth0" is an exact name, "^docker" excludes.
bool NamesAnInterface(std::string_view wanted, const std::vector<InterfaceFacts>& interfaces) {
  const bool whole = wanted.starts_with('=');
  wanted.remove_prefix(whole ? 1 : 0);
  while (!wanted.empty()) {
    const size_t end = std::min(wanted.find(','), wanted.size());
    const std::string_view name = wanted.substr(0, end);
    const auto meant = [&](std::string_view one) {
      return whole ? one == name : one.starts_with(name);
    };
    // The loopback interface is not in the list.
    if (meant("lo") || std::ranges::any_of(interfaces, meant, &InterfaceFacts::name)) return true;
    wanted.remove_prefix(std::min(end + 1, wanted.size()));
  }
  return false;
}

void FindNcclInterface(FindingGroups& groups) {
  groups.AddFacts(
      "gpu",
      [](const HostFacts& facts) -> std::string {
        const std::string& wanted = facts.nccl_interface;
        if (facts.gpu_count() == 0 || wanted.empty() || wanted.starts_with('^') ||
            NamesAnInterface(wanted, facts.interfaces))
          return "";
        return "NCCL_SOCKET_IFNAME=" + wanted + " names none of its network interfaces";
      },
      "NCCL cannot start there: unset it, or name an interface that all hosts have",
      Severity::kError);
}

// CUDA 12 runs on every driver that supports CUDA 12, whatever the minor version.
void FindOldDriver(FindingGroups& groups) {
  groups.AddFacts(
      "gpu",
      [](const HostFacts& facts) -> std::string {
        const auto driver = ParseWhole<int>(facts.gpu_cuda.substr(0, facts.gpu_cuda.find('.')));
        const auto torch = ParseWhole<int>(facts.torch_cuda.substr(0, facts.torch_cuda.find('.')));
        if (!driver || !torch || *torch <= *driver) return "";
        return Format(
            "its GPU driver {} is too old for PyTorch there: it runs CUDA up to {}, and "
            "PyTorch was built for CUDA {}",
            facts.gpu_driver, facts.gpu_cuda, facts.torch_cuda);
      },
      "install a newer driver, or a PyTorch for an older CUDA", Severity::kError);
}

void FindGpus(FindingGroups& groups) {
  groups.AddFacts(
      "gpu",
      [](const HostFacts& facts) {
        return facts.gpu_trouble.empty() ? "" : "its GPUs do not answer: " + facts.gpu_trouble;
      },
      "does nvidia-smi work there? dmesg may say more");
  FindFaultsOfGpus(groups);
  FindOldDriver(groups);
  FindNcclInterface(groups);
  groups.AddDifferences(
      "gpu", "number of GPUs is",
      [](const HostFacts& facts) { return std::to_string(facts.gpu_count()); },
      "a GPU may have fallen off the bus: look at nvidia-smi and dmesg there");
  groups.AddDifferences(
      "gpu", "has GPUs of the kind",
      [](const HostFacts& facts) { return facts.gpus.empty() ? "" : facts.gpus.front(); },
      "the slowest GPU sets the pace of all");
  groups.AddDifferences(
      "gpu", "has the GPU driver", [](const HostFacts& facts) { return facts.gpu_driver; },
      "install the same driver everywhere");
}

bool LocksMemory(const HostFacts& facts) { return facts.gpu_count() > 0 || !facts.rdma.empty(); }

void FindLimits(const DoctorLimits& limits, FindingGroups& groups) {
  groups.AddFacts(
      "memlock",
      [&](const HostFacts& facts) {
        bool small = facts.memlock && *facts.memlock < limits.memlock && LocksMemory(facts);
        return small ? "only " + BytesText(*facts.memlock) + " of memory may be locked" : "";
      },
      "GPUs and RDMA need more: 'memlock unlimited' in /etc/security/limits.conf, or "
      "--ulimit memlock=-1 for a container");
  groups.AddFacts(
      "nofile",
      [&](const HostFacts& facts) {
        bool small = facts.nofile && *facts.nofile < limits.nofile;
        return small ? "only " + CountText(*facts.nofile) + " files may be open" : "";
      },
      "data loaders need more: 'nofile 65536' in /etc/security/limits.conf, or ulimit -n in a "
      "start-up file of the shell");
  groups.AddFacts(
      "nproc",
      [&](const HostFacts& facts) {
        bool small = facts.nproc && *facts.nproc < limits.nproc;
        return small ? "only " + CountText(*facts.nproc) + " processes and threads may run" : "";
      },
      "'nproc' in /etc/security/limits.conf sets it");
}

void FindLogind(FindingGroups& groups) {
  groups.AddFacts(
      "logind",
      [](const HostFacts& facts) {
        bool kills = facts.kill_user_processes.value_or(false) && !facts.linger.value_or(false);
        return kills ? "systemd-logind ends all processes of a user who logs out "
                       "(KillUserProcesses=yes), and so a job, when its ssh session ends"
                     : "";
      },
      "loginctl enable-linger there, or KillUserProcesses=no in /etc/systemd/logind.conf");
}

std::string FullDisk(const DiskFacts& disk, const std::string& name, const DoctorLimits& limits) {
  if (!disk.total || !disk.free || *disk.total == 0) return "";
  bool full =
      static_cast<double>(*disk.free) < static_cast<double>(*disk.total) * limits.disk_free_share &&
      *disk.free < limits.disk_free;
  return full ? "the disk of " + name + " is nearly full: " + BytesText(*disk.free) + " of " +
                    BytesText(*disk.total) + " are free"
              : "";
}

void FindDisks(const DoctorLimits& limits, FindingGroups& groups) {
  const std::string fix = "make room there; checkpoints and logs will not fit";
  const std::pair<DiskFacts HostFacts::*, const char*> disks[] = {
      {&HostFacts::directory_disk, "the working directory"},
      {&HostFacts::tmp, "/tmp"},
      {&HostFacts::home, "the home directory"}};
  for (const auto& [disk, name] : disks) {
    groups.AddFacts(
        "disk",
        [&, field = disk, text = std::string(name)](const HostFacts& facts) {
          return FullDisk(facts.*field, text, limits);
        },
        fix);
  }
  groups.AddFacts(
      "shm",
      [&](const HostFacts& facts) {
        bool small = facts.shm.total && *facts.shm.total <= limits.shm;
        return small ? "/dev/shm has " + BytesText(*facts.shm.total) : "";
      },
      "hvdrun does not need it, but data loaders of PyTorch do: --shm-size or --ipc=host for a "
      "container");
}

// Compares interfaces with the same name. A name on one host alone proves nothing.
void FindNetworks(const DoctorReport& report, FindingGroups& groups) {
  std::set<std::string> names;
  for (const HostReport& host : report.hosts) {
    for (const InterfaceFacts& interface : host.facts.interfaces) names.insert(interface.name);
  }
  for (const std::string& name : names) {
    groups.AddDifferences(
        "mtu", "the MTU of " + name + " is",
        [&](const HostFacts& facts) -> std::string {
          for (const InterfaceFacts& interface : facts.interfaces) {
            if (interface.name == name) return std::to_string(interface.mtu);
          }
          return "";
        },
        "set the same MTU on all hosts of a network (ip link set dev " + name + " mtu N)");
  }
}

}  // namespace

std::vector<Finding> HostFindings(const DoctorReport& report, const DoctorLimits& limits) {
  FindingGroups groups(report.hosts);
  FindTroubles(groups);
  FindInstallations(groups);
  FindExaminations(report, groups);
  FindPython(report, groups);
  FindDirectories(report, groups);
  FindClocks(limits, groups);
  FindGpus(groups);
  FindLimits(limits, groups);
  FindLogind(groups);
  FindDisks(limits, groups);
  FindNetworks(report, groups);
  return groups.Release();
}

}  // namespace hvd
