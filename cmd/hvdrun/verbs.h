// The verbs of hvdrun, one file each. Arguments come without the program's name and the verb; the
// exit code goes back.
#ifndef HVD_CMD_HVDRUN_VERBS_H_
#define HVD_CMD_HVDRUN_VERBS_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_slots.h"
#include "launcher/hosts/host_watch.h"
#include "launcher/process/local_family.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr int kUsageError = 2;

// Prints what was asked for; the exit code.
int PrintText(const std::string& text);

// hvdrun [flags] command...: runs a job (the default).
int RunVerb(const std::vector<std::string>& args);

// hvdrun agent --job ID: one host's part of a job, with the stream to the driver on stdin and
// stdout; --resume ID and --clear ID: side commands on its host. Started by hvdrun.
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

// Of this process (this_process.cc).
std::string OwnPath();  // of this program
std::string WorkingDirectory();
std::vector<std::string> Environment();  // "NAME=value"

// The hosts that a run may use now, in order (hosts.cc). Prints what the user should know about
// them. Of an elastic job they are the first answer of their source, and may be none.
Result<std::vector<HostSlots>> HostsOf(const Settings& settings);

// Makes the source of the hosts of an elastic job (hosts.cc).
// `family`: of all children of this process. An error before anything starts; prints as HostsOf().
Result<HostWatchMaker> HostWatchOf(const Settings& settings, std::shared_ptr<LocalFamily> family);

// The file of -i must exist: ssh would fall back on other keys than the one the user named
// (hosts.cc).
Status CheckIdentityFile(const Settings& settings);

// What hvdrun --check-build prints.
std::string CheckBuildText();

}  // namespace hvd

#endif  // HVD_CMD_HVDRUN_VERBS_H_
