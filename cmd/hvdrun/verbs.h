// The subcommands of hvdrun, one file each. They get the arguments after the subcommand and return
// the exit code.
#ifndef HVD_CMD_HVDRUN_VERBS_H_
#define HVD_CMD_HVDRUN_VERBS_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/command_line.h"
#include "configs/help_text.h"
#include "configs/settings.h"
#include "discovery/allocations/allocation.h"
#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "launcher/channels/nodes/node_door.h"
#include "launcher/detached/detached_job.h"
#include "launcher/driver/driver_options.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/external/mpi/launcher_run.h"
#include "launcher/process/local_family.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/status.h"

namespace hvd {

// Prints the requested text; returns the exit code.
int PrintText(const std::string& text);

// Writes "hvdrun VERB: SENTENCE" to stderr.
void VerbLine(const char* verb, const std::string& sentence);
// The same; returns `code`.
int FailVerb(const char* verb, const std::string& sentence, int code = kUsageError);

// hvdrun [flags] command...: runs a job (the default).
int RunVerb(const std::vector<std::string>& args);

// hvdrun agent --job ID: one host's part of a job, with the stream to the driver on stdin and
// stdout; --resume ID and --clear ID: side commands on its host. Started by hvdrun.
int AgentVerb(const std::vector<std::string>& args);

// hvdrun worker --job ID --hosts N: the process that mpirun or jsrun starts for a rank. Started by
// hvdrun --mpi.
int WorkerVerb(const std::vector<std::string>& args);

// hvdrun doctor: examines hosts without a job.
int DoctorVerb(const std::vector<std::string>& args);

// hvdrun env: prints the exports that let a shell find this installation.
int EnvVerb(const std::vector<std::string>& args);

// hvdrun explain [CODE]: explains a failure code or an exit code.
int ExplainVerb(const std::vector<std::string>& args);

// hvdrun help [VERB | SECTION].
int HelpVerb(const std::vector<std::string>& args);

// hvdrun VERB -H HOST ...: runs the subcommand there over ssh and returns its exit code; nothing:
// it is for this machine (on_hosts.cc).
std::optional<int> RunOnHosts(const char* verb, const std::vector<std::string>& args);

// The ssh command for that; `terminal`: allocate one there.
std::vector<std::string> RemoteVerbCommand(const HostSpec& host, const char* verb,
                                           const std::vector<std::string>& args, bool terminal);

// hvdrun attach JOB: shows the output of a detached job since the last attach, then live; returns
// its exit code.
int AttachVerb(const std::vector<std::string>& args);
// hvdrun attach JOB -H HOST: the same on another host. `typed`: the host as typed.
int AttachOnHost(const std::string& typed, const HostSpec& host,
                 const std::vector<std::string>& args);

// hvdrun status JOB: the state of a detached job, or how it ended.
int StatusVerb(const std::vector<std::string>& args);

// hvdrun logs JOB: the kept output of a detached job, or of one of its ranks.
int LogsVerb(const std::vector<std::string>& args);

// hvdrun scale JOB N, hvdrun drain JOB HOST: the hosts of a detached elastic job.
int ScaleVerb(const std::vector<std::string>& args);
int DrainVerb(const std::vector<std::string>& args);

// hvdrun forget JOB: removes the output of a detached job that has ended.
int ForgetVerb(const std::vector<std::string>& args);

// hvdrun --detach: starts `run` in a process of its own and waits until its workers run. `job` gets
// the folder and id of the job before `run` is called (detach.cc).
int RunDetached(const ParsedCommandLine& parsed,
                const std::function<int(const DetachedJob& job)>& run);
// The detached jobs of this user, tended; and one of them (detach.cc).
Result<std::vector<DetachedJob>> DetachedJobs();
std::vector<DamagedJob> DamagedJobs();
bool IsAmongDetached(const std::string& name);  // may be damaged
Result<DetachedJob> FindDetached(const std::string& name);
// The id of the detached job with this name; any other text as it is.
std::string JobIdFor(const std::string& name);

// hvdrun ps: lists the jobs of this user on this machine.
int PsVerb(const std::vector<std::string>& args);

// hvdrun stop JOB: ends a job like Ctrl-C.
int StopVerb(const std::vector<std::string>& args);

// hvdrun trace merge|report|export|tail: reads timelines and traces of PyTorch's profiler.
int TraceVerb(const std::vector<std::string>& args);

// hvdrun tune show|export|apply|forget: the stored results of --autotune.
int TuneVerb(const std::vector<std::string>& args);

// hvdrun top: the state of a job, updated each second.
int TopVerb(const std::vector<std::string>& args);

// hvdrun dump: the last events of all ranks of a job, as a timeline.
int DumpVerb(const std::vector<std::string>& args);

// Prints a usage error; returns the exit code.
int UsageError(const Status& status);

// Of this process (this_process.cc).
std::string OwnPath();  // of this program
std::string WorkingDirectory();
std::vector<std::string> Environment();  // "NAME=value"

// The allocation of a scheduler in which this process runs (allocation.cc).
AllocationReader ReadAllocationHere();
AllocationFacts AllocationFactsHere(const Settings& settings);

// The role of this process if the same command runs on every node (nodes.cc).
struct NodePart {
  std::optional<int> code;                // set on other nodes, after node 0 has ended
  std::shared_ptr<WaitingNodes> waiting;  // set on node 0; null: no other nodes
};
// kInvalidArgument: one sentence. Blocks on other nodes.
Result<NodePart> JoinNodes(const Settings& settings);
// Tells the other nodes; returns the exit code.
int EndWithNodes(const NodePart& part, int code);

// Refuses to run as one of several tasks of a launcher, unless --allocation never was given.
Status CheckOneTaskHere(const Settings& settings);
// Resolves --launcher auto for these hosts: the scheduler's launcher if all are in its allocation.
void ChooseLauncher(const std::vector<HostSlots>& hosts, Settings& settings);
// Prints nothing after SetQuiet().
void PrintNotes(const std::vector<std::string>& notes);
void SetQuiet();
bool IsOnPath(const std::string& program);
// Under `uvx hvdrun`, puts the environment of the project first on PATH and prints a note.
void UseProjectsPython();

// What --dry-run prints (plan_text.cc).
std::string PlanText(const Plan& plan, const std::vector<HostSlots>& hosts,
                     const DriverOptions& options);

// The hosts that a run may use now, in order (hosts.cc). Prints messages about them. For an elastic
// job the first answer of their source, which may be empty.
Result<std::vector<HostSlots>> HostsOf(const Settings& settings);

// Creates the host source of an elastic job (hosts.cc). `family`: shared by all children of this
// process. Fails before anything starts; prints messages as HostsOf().
Result<HostWatchMaker> HostWatchOf(const Settings& settings, std::shared_ptr<LocalFamily> family);

// The mpirun of --mpi; empty: none (rank_launcher.cc).
std::string MpirunOnPath();
// The maker of the launcher that starts mpirun for a job over MPI, once its hosts are ready; null
// for any other job (rank_launcher.cc). Asks mpirun which MPI it is.
Result<LauncherMaker> RankLauncherFor(const DriverOptions& options,
                                      const std::shared_ptr<LocalFamily>& family);

// Whether this is a name or an address of this machine; false if it is not resolved in time
// (hosts.cc).
bool IsThisHost(const std::string& name);

// Whether this is a pod: other pods have names, and an SSH server, only once they start (hosts.cc).
bool HostsComeLate(const Settings& settings);

// The file of -i must exist: ssh would fall back on other keys than the one the user named
// (hosts.cc).
Status CheckIdentityFile(const Settings& settings);

// What hvdrun --check-build, --print-config --json and --version print.
std::string CheckBuildText();
std::string CheckBuildJson();
std::string ConfigJson(std::span<const SettingOrigin> settings);  // of --print-config
std::string VersionText();

}  // namespace hvd

#endif  // HVD_CMD_HVDRUN_VERBS_H_
