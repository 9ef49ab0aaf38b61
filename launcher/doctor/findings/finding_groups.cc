#include "launcher/doctor/findings/finding_groups.h"

#include <algorithm>
#include <map>
#include <utility>

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

}  // namespace hvd
