#include "discovery/host_selection.h"

#include "configs/message_text.h"
#include "discovery/named_hosts.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::set<std::string> OwnNames(const std::vector<HostSpec>& specs, const SelectionFacts& facts,
                               std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const HostSpec& spec : specs) names.push_back(spec.name);
  std::set<std::string> own = facts.names_of_this_machine(names);
  for (const HostSpec& spec : specs) {
    if (spec.user.empty() || !own.contains(spec.name)) continue;
    notes.push_back(Printable(spec.user + "@" + spec.name) +
                    " is this machine, where hvdrun does not log in; its ranks run as the user who "
                    "started hvdrun");
  }
  return own;
}

Result<std::vector<HostSlots>> SimulatedHosts(const std::vector<HostSlots>& hosts, uint32_t count) {
  if (hosts.size() == 1 && !hosts.front().remote) return SimulateHosts(hosts.front(), count);
  return InvalidArgument("--hosts-per-machine plays hosts on this machine, and " +
                         Printable(hosts.back().host) + " is another one; leave one of them out");
}

// "name:4"
bool LooksLikeHost(const std::string& word) {
  const size_t colon = word.find(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < word.size() &&
         word.find('/') == std::string::npos &&
         word.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

}  // namespace

Result<std::vector<HostSpec>> ReadHostFile(const std::string& path, const SelectionFacts& facts) {
  const std::string shown = Printable(path, kMaxShownPath);
  Result<std::string> text = facts.read_file(path);
  if (!text.ok()) {
    return InvalidArgument("the host file " + shown + " " + text.status().message() +
                           "; check its path");
  }
  if (text->empty()) return InvalidArgument("the host file " + shown + " is empty; check its path");
  return ParseHostFile(*text, shown);
}

Result<HostsAsNamed> ReadHostsAsNamed(const Settings& settings, const SelectionFacts& facts,
                                      std::vector<std::string>& notes) {
  const std::string& hosts = settings.hosts;
  if (!settings.hostfile.empty() && !hosts.empty())
    return InvalidArgument("-H and --hostfile both name the hosts; use one of them");
  HostsAsNamed named{.file = settings.hostfile};
  const bool is_file = !hosts.empty() && NamesHostFile(hosts, facts.word_facts(hosts));
  if (is_file) named.file = hosts;
  Result<std::vector<HostSpec>> specs =
      named.file.empty() ? ParseHostList(hosts) : ReadHostFile(named.file, facts);
  if (!specs.ok()) return specs.status();
  named.specs = std::move(*specs);
  if (is_file)
    notes.push_back("-H " + Printable(hosts, kMaxShownPath) +
                    " is a file and is read as a host file (--hostfile)");
  return named;
}

uint32_t SlotsPerHost(const Settings& settings, const SelectionFacts& facts, bool remote) {
  if (settings.slots_per_host > 0) return static_cast<uint32_t>(settings.slots_per_host);
  return remote ? 0 : facts.default_slots();
}

Result<std::vector<HostSlots>> SelectHosts(const Settings& settings, const SelectionFacts& facts,
                                           std::vector<std::string>& notes) {
  const auto num_proc = static_cast<uint32_t>(settings.num_proc);
  const auto simulated = static_cast<uint32_t>(settings.hosts_per_machine);
  if (settings.hosts.empty() && settings.hostfile.empty())
    return SimulateHosts({facts.host_name(), (num_proc + simulated - 1) / simulated}, simulated);
  Result<HostsAsNamed> named = ReadHostsAsNamed(settings, facts, notes);
  if (!named.ok()) return named.status();
  const std::set<std::string> own = OwnNames(named->specs, facts, notes);
  Result<std::vector<HostSlots>> hosts = MergeNamedHosts(
      named->specs, {[&](const std::string& name) { return own.contains(name); },
                     [&](bool remote) { return SlotsPerHost(settings, facts, remote); }});
  if (!hosts.ok() || simulated == 1) return hosts;
  return SimulatedHosts(*hosts, simulated);
}

Result<int> SlotsOfAll(const std::vector<HostSlots>& hosts) {
  uint64_t sum = 0;
  for (const HostSlots& host : hosts) {
    if (!host.slots_known) {
      return InvalidArgument("-np is missing, and " + Printable(host.host) +
                             " is named without its slots: say -np, or " + Printable(host.host) +
                             ":4 where it has four");
    }
    sum += host.slots;
  }
  constexpr uint64_t kMost = 1'000'000;  // the maximum of -np
  if (sum <= kMost) return static_cast<int>(sum);
  return InvalidArgument(Format(
      "the hosts have {} slots, more than the 1000000 processes that a job may have; say -np",
      sum));
}

Status CheckNoHostInCommand(const Settings& settings, const std::vector<std::string>& command) {
  if (settings.hosts.empty() || command.empty() || !LooksLikeHost(command[0])) return Status::Ok();
  const std::string word = Printable(command[0], kMaxShownPath);
  const std::string hosts = settings.hosts.substr(0, settings.hosts.find_last_not_of(',') + 1);
  return InvalidArgument("'" + word + "' stands where the command begins but looks like a host; " +
                         "hosts are separated by commas: -H " + Printable(hosts, kMaxShownPath) +
                         "," + word);
}

}  // namespace hvd
