// What --dry-run prints.
#include <map>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`*?;&|<>()#") == std::string::npos;
    text += (text.empty() ? "" : " ") + (plain ? Printable(word, word.size()) : Quoted(word));
  }
  return text;
}

}  // namespace

std::string PlanText(const Plan& plan, const std::vector<HostSlots>& hosts,
                     const DriverOptions& options) {
  const std::vector<std::vector<Placement>> by_host = plan.ByHost();
  std::map<std::string, bool> remote;
  const std::vector<std::string> names = NamesOf(hosts);
  for (size_t i = 0; i < hosts.size(); ++i) remote[names[i]] = hosts[i].remote;
  std::string lines, unknown;
  for (const HostSlots& host : hosts) {
    if (!host.slots_known && unknown.empty())
      unknown = "hosts that are named without slots tell theirs at the start: places may change\n";
  }
  size_t used = 0;
  for (size_t host = 0; host < by_host.size(); ++host) {
    if (by_host[host].empty()) continue;
    ++used;
    std::vector<uint32_t> ranks;
    for (const Placement& place : by_host[host]) ranks.push_back(place.rank);
    lines += "  " + plan.hosts[host] + (remote[plan.hosts[host]] ? "" : " (this machine)") +
             (ranks.size() == 1 ? ": rank " : ": ranks ") + RankRanges(ranks) + "\n";
  }
  return Counted(plan.size(), "rank", "ranks") + " on " + Counted(used, "host", "hosts") + ":\n" +
         lines + unknown + "command: " + CommandText(options.command) +
         "\ndirectory: " + Printable(options.directory, kMaxShownPath) + "\nnothing was started\n";
}

}  // namespace hvd
