// Settings: the values that the settings table resolves to, typed. A plain value; copy it freely.
#ifndef HVD_CONFIGS_SETTINGS_H_
#define HVD_CONFIGS_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/choices.h"
#include "runtime/base/log.h"

namespace hvd {

// Two whole numbers, lo <= hi. {0, 0}: not given.
struct IntRange {
  int lo = 0, hi = 0;

  bool given() const { return hi != 0; }
  bool operator==(const IntRange&) const = default;
};

// The action requested by the command line.
enum class Action { kRun, kBriefHelp, kHelp, kVersion, kPrintConfig, kCheckBuild };

// Flags after one of these are not parsed.
constexpr bool EndsReading(Action action) {
  return action == Action::kBriefHelp || action == Action::kHelp || action == Action::kVersion;
}

// One field per row of the settings table that holds a value. A row's default replaces what a field
// starts with here. Where a row has none, the start value means "not given".
struct Settings {
  int num_proc = 0;
  bool module = false;  // the command is a module of Python
  bool dry_run = false;
  bool detach = false;
  int64_t detached_output_limit_bytes = 0;
  double detached_keep_seconds = 0;
  bool verbose = false;
  bool quiet = false;
  std::string config_file;  // empty: none
  bool standing_config = true;
  bool strict_config = false;

  // Hosts; empty or 0: not given.
  std::string hosts;
  std::string hostfile;
  int hosts_per_machine = 1;
  int function_channel = -1;  // of horovod.run(): a connected socket that hvdrun has inherited
  int slots_per_host = 0;
  // The same command on every node (discovery/allocations/node_group.h); empty, -1 or 0: not given.
  std::string nnodes;  // "2", "1:4"
  int node_rank = -1;
  std::string master_addr;  // node 0, as HOST or HOST:PORT
  int master_port = 0;
  int ssh_port = 0;  // 0: from ssh's configuration
  std::string ssh_identity_file;
  HostKeys ssh_host_keys = HostKeys::kStrict;
  SshClient ssh_client = SshClient::kAuto;
  std::string rsh_agent;  // empty: ssh
  AllocationUse allocation = AllocationUse::kAuto;
  RemoteLauncher launcher = RemoteLauncher::kAuto;
  BundleUse bundle = BundleUse::kAuto;
  std::string network_interfaces;
  std::string port_range;
  int tree_radix = 0;  // hosts beyond which agents form a tree
  RelayUse relay = RelayUse::kAuto;
  std::string stage_timeouts;

  // Ranks that mpirun or jsrun starts.
  Controller controller = Controller::kAuto;  // the switches below say the same
  bool use_mpi = false;
  bool use_jsrun = false;
  std::string mpi_args;      // as a shell would split them
  std::string binding_args;  // the same
  bool tcp = false;

  // Elastic jobs; launcher/job/policy/job_policy.h has what they mean together.
  bool elastic = false;
  std::string host_discovery_script;  // a command for /bin/sh; empty: none
  int min_num_proc = 0;               // 0: not given
  int max_num_proc = 0;               // 0: not given
  double elastic_timeout = 0;         // seconds
  double init_timeout = 0;            // seconds
  int reset_limit = -1;               // -1: none
  IntRange blacklist_cooldown_range;  // seconds
  std::string max_failures;           // "10", "10/1h"
  int max_restarts = 0;               // as max_failures, and makes the job elastic; 0: not given
  int spares = 0;
  int64_t keep_commits_bytes = 0;  // on each host, for the last two; 0: they die with the workers
  RestartMode elastic_restart = RestartMode::kAuto;

  bool json = false;  // of hvdrun doctor, --print-config and --check-build

  std::string output_filename;     // a directory
  int64_t output_limit_bytes = 0;  // of one file; 0: none
  std::string prefix;              // a template
  bool prefix_timestamp = false;
  int progress_rate = 0;  // updates of a progress bar shown a second; 0: all
  bool fold = false;
  ColorUse color = ColorUse::kAuto;

  std::vector<std::string> pass_env;  // each "NAME" or "NAME=value", in order
  std::string env_file;
  std::string chdir;  // of the ranks; empty: that of hvdrun
  bool print_env = false;
  StdinTo stdin_to = StdinTo::kNone;
  bool stock_horovod = false;  // workers do not use this runtime
  BindTo bind_to = BindTo::kNone;
  GpuVisibility gpus = GpuVisibility::kAll;
  int omp_threads = 0;  // 0: the share of cores, -1: left alone

  std::string timeline_filename;  // a file; "DYNAMIC": begun by hvd.start_timeline(); empty: none
  bool timeline_mark_cycles = false;
  int64_t timeline_max_bytes = 0;  // of the file; 0: no limit
  int timeline_steps = 0;          // of the job; 0: no limit
  TimelineKeep timeline_keep = TimelineKeep::kFirst;

  int metrics_port = -1;     // where Prometheus asks; 0: any free one; -1: none
  std::string metrics_bind;  // the address of that port

  bool autotune = false;
  std::string autotune_log_file;  // empty: none
  std::string autotune_report;    // empty: none
  bool autotune_memory = true;
  int autotune_warmup_samples = 0, autotune_steps_per_sample = 0, autotune_most_samples = 0;

  double timeout_seconds = 0;  // 0: none
  std::string error_file;
  std::string dump_on_failure;  // the file for the last events of a job that failed; empty: none

  // Checked here and used in the workers alone, which read them from their variables
  // (worker_environment).
  int64_t fusion_threshold_bytes = 128 << 20;  // between hosts; 0: tensors travel alone
  std::string join_average;
  std::string torch_backend;  // gloo or hvd: what a script gets that asks for gloo
  bool gpu_graphs = false;
  bool nvtx_ranges = false;
  bool stall_check_stacks = true;
  int gloo_timeout_seconds = 0;  // for connecting; 0: no limit
  // 0 where nothing was given: without a variable the runtime chooses.
  int chunk_kib = 0, ring_from_kib = 0, wait_spins = 0, wait_yields = 0;
  int inter_host_piece_kib = 0, inter_host_pieces = 0, inter_host_stripes = 0;

  // Used here and in the workers.
  bool stall_check = true;
  int stall_warning_seconds = 0;
  int stall_shutdown_seconds = 0;  // 0: never
  LogLevel log_level = LogLevel::kWarning;

  // How long hvdrun and its agents wait.
  double start_timeout_seconds = 0;
  double terminate_grace_seconds = 0;  // SIGTERM to SIGKILL
  double heartbeat_timeout_seconds = 0;
  // How long an agent waits after a lost connection; -1: not given.
  double driver_grace_seconds = -1;

  // If the hosts are those of a scheduler's allocation: its job id, and a command that prints the
  // current hosts. Empty: none.
  std::string allocated_job, allocation_command;

  // "NAME=value" for every setting that has a variable and was given; part of the workers'
  // environment.
  std::vector<std::string> worker_environment;
};

// Whether hosts and ranks may change while the job runs.
inline bool IsElastic(const Settings& settings) {
  return settings.elastic || settings.min_num_proc > 0 || !settings.host_discovery_script.empty();
}

// Whether the same command also runs on other nodes.
inline bool StartsOnEachNode(const Settings& settings) {
  return !settings.nnodes.empty() && settings.nnodes != "1";
}

// The program that starts the ranks instead of hvdrun's own agents: "mpirun", "jsrun" or none.
inline std::string RankLauncherOf(const Settings& settings) {
  if (settings.controller == Controller::kMpi) return "mpirun";
  return settings.controller == Controller::kJsrun ? "jsrun" : "";
}

// Whether hvdrun writes a timeline.
inline bool HasTimelineFile(const Settings& settings) {
  return !settings.timeline_filename.empty() && settings.timeline_filename != "DYNAMIC";
}

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTINGS_H_
