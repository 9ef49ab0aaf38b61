// ParseCommandLine: parses argv, environment and configuration files to settings and the user's
// command. Pure: prints nothing and never exits.
#ifndef HVD_CONFIGS_COMMAND_LINE_H_
#define HVD_CONFIGS_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config_files.h"
#include "configs/help_text.h"
#include "configs/setting_sources.h"
#include "configs/settings.h"
#include "configs/settings_table.h"
#include "runtime/base/status.h"

namespace hvd {

// The hosts that a scheduler allocated to this job.
struct AllocatedHosts {
  std::string name;   // "Slurm job 7"
  std::string text;   // the message that announces it
  std::string hosts;  // as for -H; empty: the scheduler lists no hosts
  int slots = 0;      // total
  RemoteLauncher launcher = RemoteLauncher::kAuto;  // as the settings of these names, kAuto
  std::string rsh_agent;                            // and empty: ssh
  std::string job, command;  // as Settings::allocated_job and allocation_command
  int least_slots = 0;       // minimum for an elastic job; 0: fixed size
};
// The allocation in which this process runs, if any, for a run with these settings. Errors are one
// sentence.
using AllocationReader =
    std::function<Result<std::optional<AllocatedHosts>>(const Settings& settings)>;

struct ParsedCommandLine {
  Action action = Action::kRun;
  Settings settings;  // filled for kRun and kPrintConfig
  std::vector<std::string>
      command;  // the user's program and its arguments, untouched; not empty for kRun of a job
  std::vector<std::string> warnings;  // one line each, for the log
  std::vector<std::string> notes;     // one line each, for the user
  std::string
      text;  // for every other action but kCheckBuild: what to print on stdout, ends with a newline
  std::vector<SettingOrigin> origins;  // of kPrintConfig: the same as values
};

// Default number of processes of this machine: its GPUs ("gpu", 0: none), the cores that this
// process may use ("cpu"), or GPUs if any, else cores ("auto").
using SlotCounter = std::function<uint32_t(std::string_view kind)>;

// `args` is argv without the program's name and the verb; hvdrun doctor needs neither -np nor a
// command. Precedence: default < standing files < --config-file < environment < flag. A usage error
// is kInvalidArgument with one sentence that names the value and one that would work (exit code 2).
// `read_allocation` is called if no hosts are given.
Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& args,
                                           const EnvLookup& env,
                                           const FileReader& read_file = ReadConfigFile,
                                           Verb verb = Verb::kRun,
                                           const AllocationReader& read_allocation = {},
                                           const SlotCounter& count_slots = {},
                                           const StandingSettings& standing = {});

}  // namespace hvd

#endif  // HVD_CONFIGS_COMMAND_LINE_H_
