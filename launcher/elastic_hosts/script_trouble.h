// Describes in words how a run of a discovery script failed. Pure.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_TROUBLE_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_TROUBLE_H_

#include <optional>
#include <string>

#include "launcher/elastic_hosts/answer_history.h"
#include "launcher/elastic_hosts/script_run.h"

namespace hvd {

// Nothing when the script ended with 0; its output may still be no list of hosts.
std::optional<SourceTrouble> TroubleOf(const std::string& command, const ScriptOutcome& outcome,
                                       const ScriptLimits& limits);

// Of output that is no list of hosts. `reason`: of ParseDiscoveredHosts().
SourceTrouble BadOutput(const std::string& command, const std::string& reason);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_TROUBLE_H_
