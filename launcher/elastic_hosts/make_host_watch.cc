#include "launcher/elastic_hosts/make_host_watch.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "launcher/elastic_hosts/hostfile_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/elastic_hosts/script_watch.h"
#include "runtime/base/text/format.h"

namespace hvd {

void FixedWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  named_.Resolve(specs_, [on_answer = std::move(on_answer)](std::vector<HostSlots> hosts) {
    on_answer({std::move(hosts), ""});
  });
}

namespace {

using Source = HostWatchPlan::Source;

// "host-0", "host-1": as SimulateHosts() calls them.
std::vector<std::string> SimulatedNames(const Settings& settings) {
  std::vector<std::string> names;
  if (settings.hosts_per_machine == 1) return names;
  for (int i = 0; i < settings.hosts_per_machine; ++i) names.push_back(Format("host-{}", i));
  return names;
}

// With enough slots for all ranks and spares.
std::vector<HostSpec> ThisMachine(const Settings& settings, const SelectionFacts& facts,
                                  std::vector<std::string> simulated) {
  if (simulated.empty()) simulated.push_back(facts.host_name());
  const auto needed =
      static_cast<size_t>(std::max(settings.num_proc, settings.max_num_proc) + settings.spares);
  std::vector<HostSpec> specs;
  for (const std::string& name : simulated) {
    HostSpec spec;
    spec.name = name;
    spec.slots = static_cast<uint32_t>((needed + simulated.size() - 1) / simulated.size());
    specs.push_back(std::move(spec));
  }
  return specs;
}

WatchParts PartsOf(const Settings& settings, const HostWatchPlan& plan, const SelectionFacts& facts,
                   const HostWatchProcess& process) {
  WatchParts parts;
  parts.own_names = [among = facts.names_of_this_machine,
                     simulated = plan.simulated](const std::vector<std::string>& names) {
    std::set<std::string> own;
    std::vector<std::string> others;
    for (const std::string& name : names) {
      if (std::find(simulated.begin(), simulated.end(), name) != simulated.end()) {
        own.insert(name);
      } else {
        others.push_back(name);
      }
    }
    if (!others.empty()) own.merge(among(others));
    return own;
  };
  parts.default_slots = [settings, facts](bool remote) {
    return SlotsPerHost(settings, facts, remote);
  };
  if (process.note) parts.note = process.note;
  return parts;
}

}  // namespace

Result<HostWatchPlan> PlanHostWatch(const Settings& settings, const SelectionFacts& facts,
                                    std::vector<std::string>& notes) {
  HostWatchPlan plan{.simulated = SimulatedNames(settings)};
  if (!settings.host_discovery_script.empty()) {
    if (settings.hosts.empty() && settings.hostfile.empty()) {
      plan.source = Source::kScript;
      return plan;
    }
    return InvalidArgument(
        "--host-discovery-script and -H or --hostfile both name the hosts; use one of them");
  }
  if (settings.hosts.empty() && settings.hostfile.empty()) {
    plan.specs = ThisMachine(settings, facts, plan.simulated);
    return plan;
  }
  Result<HostsAsNamed> named = ReadHostsAsNamed(settings, facts, notes);
  if (!named.ok()) return named.status();
  plan.source = named->file.empty() ? Source::kNames : Source::kFile;
  plan.file = std::move(named->file);
  if (plan.source == Source::kNames) plan.specs = std::move(named->specs);
  if (!settings.allocation_command.empty()) plan.source = Source::kAllocation;
  return plan;
}

std::unique_ptr<HostWatch> MakeHostWatch(asio::io_context& io, const Settings& settings,
                                         const HostWatchPlan& plan, const SelectionFacts& facts,
                                         const HostWatchProcess& process) {
  WatchParts parts = PartsOf(settings, plan, facts, process);
  switch (plan.source) {
    case Source::kScript:
      return std::make_unique<ScriptWatch>(
          io, Script{settings.host_discovery_script, process.environment, process.directory},
          std::move(parts), process.family);
    case Source::kFile:
      return std::make_unique<HostfileWatch>(
          io, plan.file, [facts](const std::string& path) { return ReadHostFile(path, facts); },
          parts);
    case Source::kAllocation:
      return std::make_unique<ScriptWatch>(
          io, Script{settings.allocation_command, process.environment, process.directory},
          std::move(parts), process.family, ScriptWatchTimes{.pause = process.allocation_pause},
          process.read_allocation, plan.specs);
    case Source::kNames: break;
  }
  return std::make_unique<FixedWatch>(io, plan.specs, parts);
}

HostAnswer FirstAnswer(asio::io_context& io, HostWatch& watch) {
  std::optional<HostAnswer> first;
  io.restart();  // it may have run out of work before
  watch.Start([&](const HostAnswer& answer) {
    if (!first) first = answer;
  });
  while (!first && io.run_one() > 0) continue;
  watch.Stop();
  return first.value_or(HostAnswer{{}, "the source of hosts gave no answer"});
}

}  // namespace hvd
