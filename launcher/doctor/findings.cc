#include "launcher/doctor/findings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "launcher/bundle/remote_script.h"
#include "launcher/doctor/doctor_text.h"
#include "launcher/text/seconds_text.h"

namespace hvd {
namespace {

using Names = std::vector<std::string>;

class Judge {
 public:
  Judge(const DoctorReport& report, const DoctorLimits& limits)
      : report_(report), limits_(limits) {}

  std::vector<Finding> Findings() {
    LookAtTroubles();
    LookAtInstallations();
    LookAtExaminations();
    LookAtPython();
    LookAtDirectories();
    LookAtClocks();
    LookAtGpus();
    LookAtLimits();
    LookAtLogind();
    LookAtDisks();
    LookAtNetworks();
    LookAtPairs();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
    return std::move(findings_);
  }

 private:
  using Judgement = std::function<std::string(const HostReport&)>;

  void Add(Severity severity, const char* kind, Names hosts, std::string what, std::string fix) {
    findings_.push_back({severity, kind, std::move(hosts), std::move(what), std::move(fix)});
  }

  // Hosts of which the same is said are one finding; an empty text is none.
  void Group(Severity severity, const char* kind, const Judgement& say, const std::string& fix) {
    std::vector<std::pair<std::string, Names>> groups;
    for (const HostReport& host : report_.hosts) {
      std::string what = say(host);
      if (what.empty()) continue;
      auto known = std::find_if(groups.begin(), groups.end(),
                                [&](const auto& group) { return group.first == what; });
      if (known == groups.end()) known = groups.insert(groups.end(), {what, {}});
      known->second.push_back(host.name);
    }
    for (auto& [what, hosts] : groups) Add(severity, kind, std::move(hosts), what, fix);
  }

  // The same, of the hosts that were examined.
  void GroupFacts(const char* kind, const std::function<std::string(const HostFacts&)>& say,
                  const std::string& fix, Severity severity = Severity::kWarning) {
    Group(
        severity, kind,
        [&](const HostReport& host) { return host.examined ? say(host.facts) : std::string(); },
        fix);
  }

  // Hosts that differ from most. Hosts of which nothing is known are left out.
  void Differ(const char* kind, const std::string& name,
              const std::function<std::string(const HostFacts&)>& value, const std::string& fix) {
    std::map<std::string, size_t> counts;
    std::string usual;
    for (const HostReport& host : report_.hosts) {
      std::string text = host.examined ? value(host.facts) : "";
      if (text.empty()) continue;
      size_t count = ++counts[text];
      if (usual.empty() || count > counts[usual]) usual = text;
    }
    if (counts.size() < 2) return;
    GroupFacts(
        kind,
        [&](const HostFacts& facts) {
          std::string text = value(facts);
          return text.empty() || text == usual ? ""
                                               : name + " " + text + ", where most have " + usual;
        },
        fix);
  }

  // The sentence has its cure.
  void LookAtTroubles() {
    Group(
        Severity::kError, "host", [](const HostReport& host) { return host.trouble; }, "");
  }

  void LookAtInstallations() {
    Group(
        Severity::kWarning, "installation", [](const HostReport& host) { return host.skipped; },
        kSkipAdvice);
  }

  void LookAtExaminations() {
    if (report_.interrupted) return;
    Group(
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

  void LookAtPython() {
    GroupFacts(
        "python", [](const HostFacts& facts) { return facts.python_trouble; },
        "install " + report_.interpreter +
            " there, or put the command to examine behind --: hvdrun doctor -- python3 train.py");
    Differ(
        "python", "has Python", [](const HostFacts& facts) { return facts.python_version; },
        "use the same Python everywhere; what differs is often found only while training");
    Differ(
        "python", "has Python at", [](const HostFacts& facts) { return facts.python_path; },
        "a virtual environment that is active here must be at the same path there");
    std::set<std::string> names;
    for (const HostReport& host : report_.hosts) {
      for (const auto& [name, version] : host.facts.libraries) names.insert(name);
    }
    for (const std::string& name : names) {
      Differ(
          "library", "has " + name,
          [&](const HostFacts& facts) -> std::string {
            if (facts.python_version.empty()) return "";
            auto found = facts.libraries.find(name);
            return found == facts.libraries.end() ? "nowhere" : found->second;
          },
          "install the same version everywhere");
    }
  }

  void LookAtDirectories() {
    GroupFacts(
        "directory",
        [&](const HostFacts& facts) {
          return facts.directory.empty() || facts.directory == "ok"
                     ? ""
                     : "the working directory " + report_.directory +
                           " cannot be used there: " + facts.directory;
        },
        "start from a directory that all hosts share, or copy it there", Severity::kError);
  }

  void LookAtClocks() {
    Group(
        Severity::kWarning, "clock",
        [&](const HostReport& host) -> std::string {
          if (!host.clock) return "";
          Duration off = host.clock->skew < Duration::zero() ? -host.clock->skew : host.clock->skew;
          if (off - host.clock->uncertainty <= limits_.clock) return "";
          return "its clock is " + TimeText(off) +
                 (host.clock->skew < Duration::zero() ? " behind" : " ahead") + " of ours";
        },
        "set up time synchronisation there (chrony, systemd-timesyncd); logs, certificates and "
        "shared file systems suffer");
  }

  void LookAtGpus() {
    GroupFacts(
        "gpu",
        [](const HostFacts& facts) {
          return facts.gpu_trouble.empty() ? "" : "its GPUs do not answer: " + facts.gpu_trouble;
        },
        "is the driver loaded and nvidia-smi on PATH? dmesg may say more");
    Differ(
        "gpu", "number of GPUs is",
        [](const HostFacts& facts) { return std::to_string(facts.gpu_count()); },
        "a GPU may have fallen off the bus: look at nvidia-smi and dmesg there");
    Differ(
        "gpu", "has GPUs of the kind",
        [](const HostFacts& facts) { return facts.gpus.empty() ? "" : facts.gpus.front(); },
        "the slowest GPU sets the pace of all");
    Differ(
        "gpu", "has the GPU driver", [](const HostFacts& facts) { return facts.gpu_driver; },
        "install the same driver everywhere");
  }

  static bool LocksMemory(const HostFacts& facts) {
    return facts.gpu_count() > 0 || !facts.rdma.empty();
  }

  void LookAtLimits() {
    GroupFacts(
        "memlock",
        [&](const HostFacts& facts) {
          bool small = facts.memlock && *facts.memlock < limits_.memlock && LocksMemory(facts);
          return small ? "only " + BytesText(*facts.memlock) + " of memory may be locked" : "";
        },
        "GPUs and RDMA need more: 'memlock unlimited' in /etc/security/limits.conf, or "
        "--ulimit memlock=-1 for a container");
    GroupFacts(
        "nofile",
        [&](const HostFacts& facts) {
          bool small = facts.nofile && *facts.nofile < limits_.nofile;
          return small ? "only " + CountText(*facts.nofile) + " files may be open" : "";
        },
        "data loaders need more: 'nofile 65536' in /etc/security/limits.conf, or ulimit -n in a "
        "start-up file of the shell");
    GroupFacts(
        "nproc",
        [&](const HostFacts& facts) {
          bool small = facts.nproc && *facts.nproc < limits_.nproc;
          return small ? "only " + CountText(*facts.nproc) + " processes and threads may run" : "";
        },
        "'nproc' in /etc/security/limits.conf sets it");
  }

  void LookAtLogind() {
    GroupFacts(
        "logind",
        [](const HostFacts& facts) {
          bool kills = facts.kill_user_processes.value_or(false) && !facts.linger.value_or(false);
          return kills ? "systemd-logind ends all processes of a user who logs out "
                         "(KillUserProcesses=yes), and so a job, when its ssh session ends"
                       : "";
        },
        "loginctl enable-linger there, or KillUserProcesses=no in /etc/systemd/logind.conf");
  }

  std::string FullDisk(const DiskFacts& disk, const std::string& name) const {
    if (!disk.total || !disk.free || *disk.total == 0) return "";
    bool full = static_cast<double>(*disk.free) <
                    static_cast<double>(*disk.total) * limits_.disk_free_share &&
                *disk.free < limits_.disk_free;
    return full ? "the disk of " + name + " is nearly full: " + BytesText(*disk.free) + " of " +
                      BytesText(*disk.total) + " are free"
                : "";
  }

  void LookAtDisks() {
    const std::string fix = "make room there; checkpoints and logs will not fit";
    const std::pair<DiskFacts HostFacts::*, const char*> kDisks[] = {
        {&HostFacts::directory_disk, "the working directory"},
        {&HostFacts::tmp, "/tmp"},
        {&HostFacts::home, "the home directory"}};
    for (const auto& [disk, name] : kDisks) {
      GroupFacts(
          "disk",
          [&, field = disk, text = std::string(name)](const HostFacts& facts) {
            return FullDisk(facts.*field, text);
          },
          fix);
    }
    GroupFacts(
        "shm",
        [&](const HostFacts& facts) {
          bool small = facts.shm.total && *facts.shm.total <= limits_.shm;
          return small ? "/dev/shm has " + BytesText(*facts.shm.total) : "";
        },
        "hvdrun does not need it, but data loaders of PyTorch do: --shm-size or --ipc=host for a "
        "container");
  }

  // Of interfaces with the same name. A name on one host alone proves nothing.
  void LookAtNetworks() {
    std::set<std::string> names;
    for (const HostReport& host : report_.hosts) {
      for (const InterfaceFacts& interface : host.facts.interfaces) names.insert(interface.name);
    }
    for (const std::string& name : names) {
      Differ(
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

  template <typename Value>
  static Value Median(std::vector<Value> values) {
    if (values.empty()) return Value{};
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  // A host in more than half of the bad pairs and in most of its own is to blame; else the pairs
  // are named.
  void Blame(Severity severity, const char* kind, const std::vector<const PairReport*>& bad,
             const std::function<std::string(const PairReport&)>& say, const std::string& fix) {
    std::map<uint32_t, size_t> bad_of, all_of;
    for (const PairReport& pair : report_.pairs) {
      ++all_of[pair.a];
      ++all_of[pair.b];
    }
    for (const PairReport* pair : bad) {
      ++bad_of[pair->a];
      ++bad_of[pair->b];
    }
    std::set<uint32_t> guilty;
    if (report_.pairs.size() > 1) {
      for (const auto& [host, count] : bad_of) {
        if (2 * count > all_of[host] && bad.size() > 1) guilty.insert(host);
      }
      // Everybody is bad to the guilty one: only who is bad to more than one of the others counts.
      size_t most = 0;
      for (uint32_t host : guilty) most = std::max(most, bad_of[host]);
      std::erase_if(guilty, [&](uint32_t host) { return 2 * bad_of[host] <= most; });
    }
    for (uint32_t host : guilty) {
      const PairReport* worst = nullptr;
      for (const PairReport* pair : bad) {
        if (worst == nullptr && (pair->a == host || pair->b == host)) worst = pair;
      }
      Add(severity, kind, {report_.hosts[host].name},
          "is common to " + std::to_string(bad_of[host]) + " bad pairs of " +
              std::to_string(all_of[host]) + "; with " +
              report_.hosts[worst->a == host ? worst->b : worst->a].name + ": " + say(*worst),
          fix);
    }
    for (const PairReport* pair : bad) {
      if (guilty.contains(pair->a) || guilty.contains(pair->b)) continue;
      Add(severity, kind, {report_.hosts[pair->a].name, report_.hosts[pair->b].name},
          "the way between them: " + say(*pair), fix);
    }
  }

  void LookAtPairs() {
    std::vector<const PairReport*> broken, late, slow;
    std::vector<Duration> latencies;
    std::vector<double> speeds;
    for (const PairReport& pair : report_.pairs) {
      if (pair.latency > Duration::zero()) latencies.push_back(pair.latency);
      if (pair.a_to_b > 0) speeds.push_back(pair.a_to_b);
      if (pair.b_to_a > 0) speeds.push_back(pair.b_to_a);
    }
    const Duration latency = Median(latencies);
    const double speed = Median(speeds);
    for (const PairReport& pair : report_.pairs) {
      bool reported =
          !report_.hosts[pair.a].trouble.empty() || !report_.hosts[pair.b].trouble.empty();
      if (!pair.trouble.empty() && !reported) broken.push_back(&pair);
      if (!pair.trouble.empty()) continue;
      if (static_cast<double>(pair.latency.count()) >
              static_cast<double>(latency.count()) * limits_.slow_latency &&
          pair.latency > latency + limits_.slow_latency_least) {
        late.push_back(&pair);
      }
      double least = std::min(pair.a_to_b, pair.b_to_a);
      if (least > 0 && least * limits_.slow_speed < speed) slow.push_back(&pair);
    }
    Blame(
        Severity::kError, "path", broken, [](const PairReport& pair) { return pair.trouble; },
        "look at the network between them, and at firewalls; --network-interfaces takes another "
        "way");
    Blame(
        Severity::kWarning, "latency", late,
        [&](const PairReport& pair) {
          return "a message takes " + TimeText(pair.latency) +
                 " there and back, where the median is " + TimeText(latency);
        },
        "is it another rack, a busy host, or another network? --network-interfaces chooses");
    Blame(
        Severity::kWarning, "speed", slow,
        [&](const PairReport& pair) {
          return SpeedText(std::min(pair.a_to_b, pair.b_to_a)) + " from " +
                 report_.hosts[pair.a_to_b <= pair.b_to_a ? pair.a : pair.b].name + " to " +
                 report_.hosts[pair.a_to_b <= pair.b_to_a ? pair.b : pair.a].name +
                 ", where the median is " + SpeedText(speed);
        },
        "look at its cable, duplex and errors (ip -s link, ethtool), or leave it out: the slowest "
        "way sets the pace of all");
  }

  const DoctorReport& report_;
  const DoctorLimits limits_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> FindingsOf(const DoctorReport& report, const DoctorLimits& limits) {
  return Judge(report, limits).Findings();
}

int DoctorExitCode(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; })
             ? 1
             : 0;
}

}  // namespace hvd
