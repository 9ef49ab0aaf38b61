// The verbs of hvdrun, one file each. Arguments come without the program's name and the verb; the
// exit code goes back.
#ifndef HVD_CMD_HVDRUN_VERBS_H_
#define HVD_CMD_HVDRUN_VERBS_H_

#include <string>
#include <string_view>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_slots.h"
#include "launcher/driver/driver.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr int kUsageError = 2;

// Prints what was asked for; the exit code.
int PrintText(const std::string& text);

// hvdrun [flags] command...: runs a job (the default).
int RunVerb(const std::vector<std::string>& args);

// hvdrun agent --job ID: one host's part of a job, spoken to on stdin and stdout; --resume ID and
// --clear ID: side commands beside it. Started by hvdrun.
int AgentVerb(const std::vector<std::string>& args);

// hvdrun doctor: examines hosts without a job.
int DoctorVerb(const std::vector<std::string>& args);

// hvdrun env: prints the exports that let a shell find this installation.
int EnvVerb(const std::vector<std::string>& args);

// hvdrun ps: lists the jobs of this user on this machine.
int PsVerb(const std::vector<std::string>& args);

// hvdrun stop JOB: ends one of them as Ctrl-C would.
int StopVerb(const std::vector<std::string>& args);

// Prints a usage error; the exit code.
int UsageError(const Status& status);

// Of this process (run.cc).
std::string WorkingDirectory();
std::vector<std::string> Environment();  // "NAME=value"

// What the settings say about the network between the hosts (run.cc).
struct NetworkSettings {
  StageLimits stage_limits = StageLimits::Default();
  std::vector<std::string> interfaces;     // empty: all
  uint16_t first_port = 0, last_port = 0;  // both 0: any
};
Result<NetworkSettings> ReadNetwork(const Settings& settings);

// The hosts that a run may use, in order (hosts.cc).
Result<std::vector<HostSlots>> HostsOf(const Settings& settings);
// `-H a:1 b:1 python`: the second host would be taken for the command.
Status CheckNoHostInCommand(const Settings& settings, const std::vector<std::string>& command);

// The file of -i must be there: a login that falls back on other keys would not be the one that was
// asked for (hosts.cc).
Status CheckIdentityFile(const Settings& settings);

// Where this program lies (channels.cc).
std::string OwnPath();

struct PortRange {
  uint16_t first = 0, last = 0;  // both 0: any
};
Result<PortRange> ParsePortRange(std::string_view text);

// How the hosts of a plan are reached (channels.cc).
ChannelFactory WaysTo(const std::vector<HostSlots>& hosts, const Settings& settings,
                      const std::string& job_id);

// What hvdrun --check-build prints.
std::string CheckBuildText();

}  // namespace hvd

#endif  // HVD_CMD_HVDRUN_VERBS_H_
