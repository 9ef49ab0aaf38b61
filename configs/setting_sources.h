// The sources of a setting's value: flag, variable, file, default.
#ifndef HVD_CONFIGS_SETTING_SOURCES_H_
#define HVD_CONFIGS_SETTING_SOURCES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/option_parser.h"
#include "configs/settings_table.h"
#include "configs/yaml_file.h"
#include "runtime/base/status.h"

namespace hvd {

// Precedence of the sources of a setting.

// Weakest first. A standing file applies to all jobs (config_files.h), kFile is that of
// --config-file.
enum class Strength { kDefault, kStandingFile, kFile, kVariable, kFlag };

// The value of an environment variable, or nothing when it is unset.
using EnvLookup = std::function<std::optional<std::string>(const char*)>;

struct ConfigFile {
  std::string name;
  std::map<std::string, YamlValue> values;
  Strength strength = Strength::kFile;
};

// All given values. The references must outlive it.
struct Given {
  const ParsedOptions& options;
  const EnvLookup& env;
  std::vector<ConfigFile> files;  // strongest first
};

struct Source {
  Strength strength = Strength::kDefault;
  std::string origin;  // "-np", "HOROVOD_LOG_LEVEL", "job.yaml:3", "default"
  std::string typed;   // what precedes the value as written: "-np ", "X=", "x: "
  std::string text;
  std::string place = "";  // prefix of messages: "job.yaml:3: "

  // "job.yaml:3: params.cycle_time_ms", "--cycle-time-ms"
  std::string Name() const;
};

// "HVDRUN_SSH_PORT" of "ssh-port": each visible setting has such a variable, in addition to one
// that workers may get. Empty for lists and actions.
std::string LauncherVariable(const Row& row);

// The sources of one row, strongest first. Empty variables count as unset.
std::vector<Source> SourcesOf(const Row& row, const Given& given);

// The same without sources overridden by a stronger one of another row in its group: a flag
// --hostfile overrides `launcher.hosts` in a file.
std::vector<Source> EffectiveSourcesOf(const Row& row, const Given& given);

// Whether the text equals the row's value if not set.
bool AsksForNothing(const Row& row, const std::string& text);

// The first of these settings that was given with an effective value, as written; empty: none.
std::string FirstGiven(const std::function<bool(const Row&)>& wanted, const Given& given);

// One line per unknown key of a file and unknown variable HVDRUN_X.
std::vector<std::string> UnknownNames(const Given& given,
                                      const std::vector<std::string>& variables);

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTING_SOURCES_H_
