// The allocation in which this process runs: asks this machine what discovery/allocations wants to
// know.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "cmd/hvdrun/verbs.h"
#include "discovery/allocations/find_allocation.h"
#include "discovery/allocations/node_group.h"
#include "discovery/allocations/task_check.h"
#include "discovery/this_machine.h"
#include "launcher/external/mpi/ask_program.h"
#include "runtime/base/env.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

// Runs each command once: several parts of the start need the allocation.
Result<std::string> AskOnce(const std::vector<std::string>& command) {
  static std::map<std::vector<std::string>, Result<std::string>> answers;
  const auto known = answers.find(command);
  if (known != answers.end()) return known->second;
  Result<std::string> answer =
      AskProgram(command, std::make_shared<LocalFamily>(), std::chrono::seconds(10));
  return answers.emplace(command, std::move(answer)).first->second;
}

}  // namespace

AllocationFacts AllocationFactsHere(const Settings& settings) {
  return {[options = OptionFacts(settings)](const char* name) {
            if (name[0] != '-') return GetEnv(name);
            const auto option = options.find(name);
            return option == options.end() ? std::nullopt : std::optional(option->second);
          },
          [](const std::string& path) { return ReadFileWithin(path, {}); },
          IsOnPath,
          DefaultSlots,
          AskOnce,
          [] {
            std::vector<std::string> names;
            for (auto& [name, value] : AllEnv()) names.push_back(std::move(name));
            return names;
          }};
}

namespace {

bool AllAreIn(const std::vector<HostSlots>& hosts, const Allocation& allocation) {
  std::vector<std::string> given;
  for (const HostSpec& host : allocation.hosts) given.push_back(host.name);
  std::sort(given.begin(), given.end());
  return std::all_of(hosts.begin(), hosts.end(), [&](const HostSlots& host) {
    return !host.remote || std::binary_search(given.begin(), given.end(), host.host);
  });
}

}  // namespace

bool IsOnPath(const std::string& program) {
  if (program.starts_with('/')) return ::access(program.c_str(), X_OK) == 0;
  std::istringstream folders(GetEnv("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

AllocationReader ReadAllocationHere() {
  return [](const Settings& settings) -> Result<std::optional<AllocatedHosts>> {
    Result<std::optional<Allocation>> found = FindAllocation(AllocationFactsHere(settings));
    if (!found.ok()) return found.status();
    if (!*found) return std::optional<AllocatedHosts>();
    Allocation& allocation = **found;
    if (settings.slots_per_host > 0 && !allocation.hosts.empty()) {
      const auto slots = static_cast<uint32_t>(settings.slots_per_host);
      for (HostSpec& host : allocation.hosts) host.slots = slots;
      allocation.slots = uint64_t{slots} * allocation.hosts.size();
    }
    AllocatedHosts hosts;
    hosts.name = allocation.name;
    hosts.text = AllocationText(allocation);
    hosts.hosts = HostListText(allocation.hosts);
    hosts.slots = static_cast<int>(std::min<uint64_t>(allocation.slots, INT_MAX));
    if (allocation.least_hosts > 0) {  // of hosts with equal slots
      const uint64_t least =
          uint64_t{allocation.least_hosts} * allocation.hosts.front().slots.value_or(0);
      hosts.least_slots = static_cast<int>(std::min<uint64_t>(least, INT_MAX));
    }
    hosts.launcher = allocation.access.launcher;
    hosts.rsh_agent = allocation.access.rsh_agent;
    hosts.job = allocation.id;
    hosts.command = allocation.command;
    return std::optional<AllocatedHosts>(std::move(hosts));
  };
}

Status CheckOneTaskHere(const Settings& settings) {
  const AllocationFacts facts = AllocationFactsHere(settings);
  if (settings.allocation == AllocationUse::kNever || NamesNodes(facts)) return Status::Ok();
  return CheckOneTask(facts);
}

void ChooseLauncher(const std::vector<HostSlots>& hosts, Settings& settings) {
  if (settings.launcher != RemoteLauncher::kAuto || !settings.rsh_agent.empty()) return;
  settings.launcher = RemoteLauncher::kSsh;
  if (settings.allocation == AllocationUse::kNever) return;
  const Result<std::optional<Allocation>> found = FindAllocation(AllocationFactsHere(settings));
  // Errors in it do not matter for hosts that were named.
  if (!found.ok() || !*found || !AllAreIn(hosts, **found)) return;
  const HostAccess& access = (*found)->access;
  if (access.launcher != RemoteLauncher::kAuto) settings.launcher = access.launcher;
  settings.rsh_agent = access.rsh_agent;
}

}  // namespace hvd
