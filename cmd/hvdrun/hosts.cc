// Which hosts a run may use, from -H, --hostfile, --slots-per-host and --hosts-per-machine.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "discovery/ask_all.h"
#include "discovery/fixed_hosts.h"
#include "discovery/this_machine.h"
#include "launcher/output/output.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

// A name that is not resolved within it is taken for another machine's; its agent knows better
// (final_plan.h).
constexpr Duration kNameLimit = std::chrono::seconds(5);

Result<std::vector<HostSpec>> ReadHostFile(const std::string& path) {
  std::string shown = Printable(path, kMaxShownPath);
  Result<std::string> text = ReadFileWithin(path, {});
  if (!text.ok()) {
    return InvalidArgument("the host file " + shown + " " + text.status().message() +
                           "; check its path");
  }
  if (text->empty()) return InvalidArgument("the host file " + shown + " is empty; check its path");
  return ParseHostFile(*text, shown);
}

Result<std::vector<HostSpec>> NamedHosts(const Settings& settings) {
  const std::string& hosts = settings.hosts;
  if (!settings.hostfile.empty()) {
    if (hosts.empty()) return ReadHostFile(settings.hostfile);
    return InvalidArgument("-H and --hostfile both name the hosts; use one of them");
  }
  std::error_code ignored;
  bool is_file = std::filesystem::is_regular_file(hosts, ignored);
  if (!NamesHostFile(hosts, {is_file, is_file && IsThisMachine(hosts)})) {
    return ParseHostList(hosts);
  }
  Result<std::vector<HostSpec>> specs = ReadHostFile(hosts);
  if (specs.ok()) {
    WriteAll(STDERR_FILENO, "hvdrun: -H " + Printable(hosts, kMaxShownPath) +
                                " is a file and is read as a host file (--hostfile)\n");
  }
  return specs;
}

// 0: the agent on that host says what it has.
uint32_t SlotsPerHost(const Settings& settings, bool remote) {
  if (settings.slots_per_host > 0) return static_cast<uint32_t>(settings.slots_per_host);
  return remote ? 0 : DefaultSlots();
}

// "name:4"
bool LooksLikeHost(const std::string& word) {
  size_t colon = word.find(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < word.size() &&
         word.find('/') == std::string::npos &&
         word.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

}  // namespace

Status CheckNoHostInCommand(const Settings& settings, const std::vector<std::string>& command) {
  if (settings.hosts.empty() || command.empty() || !LooksLikeHost(command[0])) return Status::Ok();
  std::string word = Printable(command[0], kMaxShownPath);
  std::string hosts = settings.hosts.substr(0, settings.hosts.find_last_not_of(',') + 1);
  return InvalidArgument("'" + word + "' stands where the command begins but looks like a host; " +
                         "hosts are separated by commas: -H " + Printable(hosts, kMaxShownPath) +
                         "," + word);
}

Status CheckIdentityFile(const Settings& settings) {
  const std::string& file = settings.ssh_identity_file;
  if (file.empty() || file[0] == '~' || ::access(file.c_str(), R_OK) == 0) return Status::Ok();
  return InvalidArgument(
      SystemError("-i " + Printable(file, kMaxShownPath) + " cannot be read", errno).message() +
      "; name a private key");
}

Result<std::vector<HostSlots>> HostsOf(const Settings& settings) {
  auto num_proc = static_cast<uint32_t>(settings.num_proc);
  auto played = static_cast<uint32_t>(settings.hosts_per_machine);
  if (settings.hosts.empty() && settings.hostfile.empty()) {
    return PlayHosts({HostName(), (num_proc + played - 1) / played}, played);
  }
  Result<std::vector<HostSpec>> specs = NamedHosts(settings);
  if (!specs.ok()) return specs.status();
  std::vector<std::string> names;
  for (const HostSpec& spec : *specs) names.push_back(spec.name);
  const std::set<std::string> own = NamesThat(names, IsThisMachine, kNameLimit);
  for (const HostSpec& spec : *specs) {
    if (!spec.user.empty() && own.contains(spec.name))
      WriteAll(STDERR_FILENO, "hvdrun: " + Printable(spec.user + "@" + spec.name) +
                                  " is this machine, where hvdrun does not log in; its ranks run "
                                  "as the user who started hvdrun\n");
  }
  FixedHosts source(*specs, {[&](const std::string& name) { return own.contains(name); },
                             [&](bool remote) { return SlotsPerHost(settings, remote); }});
  Result<std::vector<HostSlots>> hosts = source.Hosts();
  if (!hosts.ok()) return hosts;
  if (played == 1) return hosts;
  if (hosts->size() > 1 || hosts->front().remote) {
    return InvalidArgument("--hosts-per-machine plays hosts on this machine, and " +
                           Printable(hosts->back().host) +
                           " is another one; leave one of them out");
  }
  return PlayHosts(hosts->front(), played);
}

}  // namespace hvd
