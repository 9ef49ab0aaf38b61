#include "launcher/doctor/doctor_table.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "launcher/doctor/report/doctor_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kManyHosts = 8;  // above this, hosts and pairs are summarised
constexpr size_t kNameColumn = 14;

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 2, width), ' ');
  return text;
}

std::string Joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string ClockText(const ClockSkew& clock) {
  return SignedTimeText(clock.skew) + " (+-" + TimeText(clock.uncertainty) + ")";
}

// "min X (a), median Y, worst Z (b)", of named values; `order` says which are worse.
template <typename Value>
std::string Spread(std::vector<std::pair<Value, std::string>> values, bool small_is_worse,
                   const std::function<std::string(Value)>& text) {
  if (values.empty()) return "none measured";
  std::sort(values.begin(), values.end());
  if (small_is_worse) std::reverse(values.begin(), values.end());
  auto with_name = [&](const auto& entry) { return text(entry.first) + " (" + entry.second + ")"; };
  return "best " + with_name(values.front()) + ", median " + text(values[values.size() / 2].first) +
         ", worst " + with_name(values.back());
}

// The reason is in the findings.
std::string StageOfFailure(const HostReport& host) {
  if (host.stage >= HostStage::kThere) return "LOST while it was examined";
  return std::string("FAILED, ") + StageText(host.stage);
}

std::string FailureText(const HostReport& host) {
  return StageOfFailure(host) + ", after " + TimeText(host.took);
}

std::string AgentConnections(const DoctorReport& report) {
  std::string text = "Hosts\n";
  const bool many = report.hosts.size() > kManyHosts;
  size_t width = kNameColumn;
  for (const HostReport& host : report.hosts) width = std::max(width, host.name.size() + 2);
  std::vector<std::pair<Duration, std::string>> times, clocks;
  std::vector<std::pair<std::string, std::vector<std::string>>> troubles;
  for (const HostReport& host : report.hosts) {
    if (!host.trouble.empty()) {
      const std::string stage = StageOfFailure(host);
      auto known = std::find_if(troubles.begin(), troubles.end(),
                                [&](const auto& group) { return group.first == stage; });
      if (many && known == troubles.end()) known = troubles.insert(troubles.end(), {stage, {}});
      if (many) known->second.push_back(host.name);
      if (!many) {
        text += "  " + Padded(host.name, width) + FailureText(host) + "\n";
      }
      continue;
    }
    times.emplace_back(host.took, host.name);
    if (host.clock) {
      Duration off = host.clock->skew < Duration::zero() ? -host.clock->skew : host.clock->skew;
      clocks.emplace_back(off, host.name);
    }
    if (many) continue;
    text += "  " + Padded(host.name, width) + "ready after " + TimeText(host.took);
    if (host.clock) text += ", clock " + ClockText(*host.clock);
    if (!host.other_names.empty()) text += ", also named " + HostNames(host.other_names);
    text += "\n";
  }
  if (!many) return text;
  for (const auto& [trouble, names] : troubles)
    text += "  " + HostNames(names) + ": " + trouble + "\n";
  const std::function<std::string(Duration)> as_time = [](Duration d) { return TimeText(d); };
  text += Format("  {} of {} ready\n", times.size(), report.hosts.size());
  if (!times.empty())
    text += "  time until ready: " + Spread<Duration>(times, false, as_time) + "\n";
  if (!clocks.empty())
    text += "  clock differs by: " + Spread<Duration>(clocks, false, as_time) + "\n";
  return text;
}

using ValueOf = std::function<std::string(const HostReport&)>;

// "Python  3.11.2" when all agree, else a line per value with its hosts, the most frequent first.
std::string FactLines(const DoctorReport& report, const std::string& name, const ValueOf& value) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  size_t examined = 0;
  for (const HostReport& host : report.hosts) {
    if (!host.examined) continue;
    ++examined;
    std::string text = value(host);
    if (text.empty()) continue;
    auto known = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == text; });
    if (known == groups.end()) known = groups.insert(groups.end(), {text, {}});
    known->second.push_back(host.name);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string lines;
  for (const auto& [text, hosts] : groups) {
    lines += "  " + Padded(lines.empty() ? name : "", kNameColumn) + text;
    if (hosts.size() < examined) lines += "   [" + HostNames(hosts) + "]";
    lines += "\n";
  }
  return lines;
}

// For values that vary slightly between hosts, the range is informative.
std::string RangeLine(const DoctorReport& report, const std::string& name,
                      const std::function<std::optional<uint64_t>(const HostFacts&)>& value) {
  std::vector<std::pair<uint64_t, std::string>> values;
  for (const HostReport& host : report.hosts) {
    if (!host.examined) continue;
    if (std::optional<uint64_t> known = value(host.facts)) values.emplace_back(*known, host.name);
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  std::string least = BytesText(values.front().first), most = BytesText(values.back().first);
  std::string text = least == most ? least
                                   : least + " (" + values.front().second + ") to " + most + " (" +
                                         values.back().second + ")";
  return "  " + Padded(name, kNameColumn) + text + "\n";
}

// "4 x NVIDIA H200 143771 MiB, driver 550.54"
std::string GpuText(const HostFacts& facts) {
  if (facts.gpu_count() == 0) return "none";
  std::set<std::string> kinds(facts.gpus.begin(), facts.gpus.end());
  std::string text = std::to_string(facts.gpu_count());
  if (!kinds.empty()) text += " x " + Joined({kinds.begin(), kinds.end()}, " / ");
  if (!facts.gpu_driver.empty()) text += ", driver " + facts.gpu_driver;
  if (!facts.gpu_cuda.empty()) text += " (CUDA " + facts.gpu_cuda + ")";
  return text;
}

// "NVLink", or, where pairs differ, "NVLink 4 pairs, between sockets 2 pairs"
std::string GpuLinksText(const HostFacts& facts) {
  if (facts.gpu_links.size() == 1) return facts.gpu_links.begin()->first;
  std::vector<std::string> words;
  for (const auto& [kind, pairs] : facts.gpu_links)
    words.push_back(kind + " " + Counted(pairs, "pair", "pairs"));
  return Joined(words, ", ");
}

std::string LibrariesText(const HostFacts& facts) {
  std::vector<std::string> words;
  for (const auto& [name, version] : facts.libraries) words.push_back(name + " " + version);
  if (words.empty()) return facts.python_version.empty() ? "" : "none of those that are looked for";
  return Joined(words, ", ");
}

std::string LimitsText(const HostFacts& facts) {
  std::vector<std::string> words;
  if (facts.memlock) words.push_back("memlock " + BytesText(*facts.memlock));
  if (facts.nofile) words.push_back("open files " + CountText(*facts.nofile));
  if (facts.nproc) words.push_back("processes " + CountText(*facts.nproc));
  return Joined(words, ", ");
}

std::string LogoutText(const HostFacts& facts) {
  if (!facts.kill_user_processes) return "";
  std::string text = *facts.kill_user_processes ? "processes are ended" : "processes stay";
  return facts.linger.value_or(false) ? text + ", the user lingers" : text;
}

std::string NetworkText(const HostFacts& facts) {
  std::vector<std::string> words;
  for (const InterfaceFacts& interface : facts.interfaces)
    words.push_back(Format("{} MTU {}", interface.name, interface.mtu));
  return Joined(words, ", ");
}

std::string AddressLines(const DoctorReport& report) {
  if (report.hosts.size() > kManyHosts) return "";
  return FactLines(report, "addresses", [](const HostReport& host) {
    std::vector<std::string> words;
    for (const InterfaceFacts& interface : host.facts.interfaces) {
      for (const std::string& address : interface.addresses) words.push_back(address);
    }
    return Joined(words, ", ");
  });
}

std::string CoresText(const HostFacts& facts) {
  if (!facts.cores) return "";
  return std::to_string(*facts.cores) +
         (facts.cpu_quota ? Format(" (CPU quota of the cgroup: {:.3g})", *facts.cpu_quota) : "");
}

std::string WhatTheyHave(const DoctorReport& report) {
  if (std::none_of(report.hosts.begin(), report.hosts.end(),
                   [](const HostReport& host) { return host.examined; })) {
    return "";
  }
  auto line = [&](const char* name, std::string (*value)(const HostFacts&)) {
    return FactLines(report, name, [value](const HostReport& host) { return value(host.facts); });
  };
  std::string text = "\nWhat they have\n";
  text += FactLines(report, "hvdrun", [](const HostReport& host) { return host.version; });
  text += line("Python", [](const HostFacts& f) {
    if (f.python_version.empty()) return f.python_trouble;
    return f.python_version + (f.python_path.empty() ? "" : " at " + f.python_path);
  });
  text += line("libraries", LibrariesText);
  text += line("GPUs", GpuText);
  text += line("  connected by", GpuLinksText);
  text += line("RDMA", [](const HostFacts& f) { return Joined(f.rdma, ", "); });
  text += line("cores", CoresText);
  text += RangeLine(report, "memory", [](const HostFacts& f) { return f.memory_total; });
  text += RangeLine(report, "  available", [](const HostFacts& f) { return f.memory_available; });
  text += line("limits", LimitsText);
  text += line("at logout", LogoutText);
  text += FactLines(report, "directory", [&](const HostReport& host) {
    const std::string& state = host.facts.directory;
    return state.empty() ? "did not answer" : state == "ok" ? report.directory : state;
  });
  text += RangeLine(report, "  free", [](const HostFacts& f) { return f.directory_disk.free; });
  text += RangeLine(report, "free in home", [](const HostFacts& f) { return f.home.free; });
  text += RangeLine(report, "free in /tmp", [](const HostFacts& f) { return f.tmp.free; });
  text += RangeLine(report, "/dev/shm", [](const HostFacts& f) { return f.shm.total; });
  text += line("network", NetworkText);
  text += AddressLines(report);
  text += line("system", [](const HostFacts& f) {
    return f.system + (f.kernel.empty() ? "" : ", Linux " + f.kernel);
  });
  return text;
}

std::string PairName(const DoctorReport& report, const PairReport& pair) {
  return report.hosts[pair.a].name + " - " + report.hosts[pair.b].name;
}

std::string PairLines(const DoctorReport& report) {
  if (report.pairs.empty()) return "";
  std::string text = "\nPairs\n";
  if (report.hosts.size() <= kManyHosts) {
    size_t width = kNameColumn;
    for (const PairReport& pair : report.pairs)
      width = std::max(width, PairName(report, pair).size() + 2);
    for (const PairReport& pair : report.pairs) {
      text += "  " + Padded(PairName(report, pair), width);
      if (pair.trouble.empty()) {
        text += Padded(TimeText(pair.latency), 9) + Padded(SpeedText(pair.a_to_b) + " there", 17) +
                Padded(SpeedText(pair.b_to_a) + " back", 16) + pair.address_a + " - " +
                pair.address_b + "\n";
      } else {
        text += "FAILED: " + pair.trouble + "\n";
      }
    }
    return text;
  }
  std::vector<std::pair<Duration, std::string>> latencies;
  std::vector<std::pair<double, std::string>> speeds;
  std::vector<std::string> failed;
  for (const PairReport& pair : report.pairs) {
    std::string name = PairName(report, pair);
    if (!pair.trouble.empty()) {
      failed.push_back(name);
      continue;
    }
    latencies.emplace_back(pair.latency, name);
    speeds.emplace_back(std::min(pair.a_to_b, pair.b_to_a), name);
  }
  text += Format("  {} pairs measured", report.pairs.size());
  text += report.all_pairs ? "\n" : " (neighbours and those 2, 4, 8 ... hosts apart)\n";
  text += "  round trip: " +
          Spread<Duration>(latencies, false, [](Duration d) { return TimeText(d); }) + "\n";
  text += "  speed: " + Spread<double>(speeds, true, [](double s) { return SpeedText(s); }) + "\n";
  if (!failed.empty()) text += "  failed: " + HostNames(failed) + "\n";
  return text;
}

std::string FindingLines(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  std::string text = "\nFindings\n";
  for (const Finding& finding : findings) {
    text += finding.severity == Severity::kError ? "  error    " : "  warning  ";
    text += HostNames(finding.hosts) + ": " + finding.what;
    if (!finding.fix.empty()) text += "\n             " + finding.fix;
    text += "\n";
  }
  return text;
}

std::string Count(size_t count, const char* one, const char* many) {
  return Format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

std::string DoctorTable(const DoctorReport& report, const std::vector<Finding>& findings) {
  std::string text =
      AgentConnections(report) + WhatTheyHave(report) + PairLines(report) + FindingLines(findings);
  auto errors =
      static_cast<size_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& f) {
        return f.severity == Severity::kError;
      }));
  text += Format("\n{} of {} can be used; {}, {}{}.\n", report.usable(),
                 Count(report.hosts.size(), "host", "hosts"), Count(errors, "error", "errors"),
                 Count(findings.size() - errors, "warning", "warnings"),
                 report.interrupted ? "; interrupted before the end" : "");
  return text;
}

}  // namespace hvd
