// Settings: what the settings table resolves to, typed. A plain value; copy it freely.
#ifndef HVD_CONFIGS_SETTINGS_H_
#define HVD_CONFIGS_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

// Two whole numbers, lo <= hi. {0, 0}: not given.
struct IntRange {
  int lo = 0, hi = 0;

  bool given() const { return hi != 0; }
  bool operator==(const IntRange&) const = default;
};

// What the command line asks for.
enum class Action { kRun, kHelp, kVersion, kPrintConfig, kCheckBuild };

// One field per row of the settings table that holds a value. The defaults live in the table, not
// here.
struct Settings {
  int num_proc = 0;
  bool verbose = false;
  std::string config_file;  // empty: none

  // Hosts; empty or 0: not given.
  std::string hosts;
  std::string hostfile;
  int hosts_per_machine = 1;
  int slots_per_host = 0;
  int ssh_port = 0;  // 0: as ssh's configuration says
  std::string ssh_identity_file;
  std::string ssh_host_keys;  // strict or accept-new
  std::string ssh_client;     // auto or program
  std::string rsh_agent;      // empty: ssh
  std::string bundle;         // auto, never or always
  std::string network_interfaces;
  std::string port_range;
  std::string relay;  // auto or never
  std::string stage_timeouts;

  // Elastic jobs; launcher/job/elastic_limits.h has what they mean together.
  bool elastic = false;
  std::string host_discovery_script;  // a command for /bin/sh; empty: none
  int min_num_proc = 0;               // 0: not given
  int max_num_proc = 0;               // 0: not given
  double elastic_timeout = 0;         // seconds
  int reset_limit = -1;               // -1: none
  IntRange blacklist_cooldown_range;  // seconds
  std::string max_failures;           // "10", "10/1h"
  int spares = 0;
  std::string elastic_restart;

  bool json = false;  // of hvdrun doctor

  std::string output_filename;                 // a directory
  int64_t fusion_threshold_bytes = 128 << 20;  // between hosts; 0: tensors travel alone
  int64_t output_limit_bytes = 0;              // of one file; 0: none
  std::string prefix;                          // a template
  bool prefix_timestamp = false;
  int progress_rate = 0;  // updates of a progress bar shown a second; 0: all
  bool fold = false;
  std::string color;  // auto, always or never

  std::vector<std::string> pass_env;  // each "NAME" or "NAME=value", in order
  std::string env_file;
  bool print_env = false;
  std::string stdin_to;  // rank0, all or none
  std::string bind_to;   // none, core or numa
  int omp_threads = 0;   // 0: the share of cores, -1: left alone

  std::string timeline_filename;  // a file; "DYNAMIC": begun by hvd.start_timeline(); empty: none
  bool timeline_mark_cycles = false;
  int64_t timeline_max_bytes = 0;  // of the file; 0: no limit

  double timeout_seconds = 0;  // 0: none
  std::string error_file;

  // Obeyed by the runtime in the workers, through their variables.
  std::string join_average;
  bool stall_check = true;
  int stall_warning_seconds = 0;
  int stall_shutdown_seconds = 0;  // 0: never
  bool stall_check_stacks = true;
  int gloo_timeout_seconds = 0;  // for connecting; 0: no limit
  std::string log_level;         // TRACE, DEBUG, INFO, WARNING, ERROR or FATAL
  double start_timeout_seconds = 0;
  double terminate_grace_seconds = 0;  // SIGTERM to SIGKILL
  double heartbeat_timeout_seconds = 0;
  int tree_radix = 0;
  double driver_grace_seconds = 0;  // how long an agent waits for a stream that is lost

  // "NAME=value" for every setting that has a variable and was set by someone: workers start with
  // these.
  std::vector<std::string> worker_environment;
};

// Whether hosts and ranks may come and go while the job runs.
inline bool IsElastic(const Settings& settings) {
  return settings.elastic || settings.min_num_proc > 0 || !settings.host_discovery_script.empty();
}

// Whether hvdrun writes a timeline.
inline bool HasTimelineFile(const Settings& settings) {
  return !settings.timeline_filename.empty() && settings.timeline_filename != "DYNAMIC";
}

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTINGS_H_
