// Where the value of a setting can come from: a flag, a variable, a file, the default.
#ifndef HVD_CONFIGS_SETTING_SOURCES_H_
#define HVD_CONFIGS_SETTING_SOURCES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/option_parser.h"
#include "configs/setting_strength.h"
#include "configs/settings_table.h"
#include "configs/yaml_file.h"
#include "runtime/base/status.h"

namespace hvd {

// The value of an environment variable, or nothing when it is unset.
using EnvLookup = std::function<std::optional<std::string>(const char*)>;

struct ConfigFile {
  std::string name;
  std::map<std::string, YamlValue> values;
  Strength strength = Strength::kFile;
};

// All that was said, by whatever means. The references must outlive it.
struct Given {
  const ParsedOptions& options;
  const EnvLookup& env;
  std::vector<ConfigFile> files;  // strongest first
};

struct Source {
  Strength strength = Strength::kDefault;
  std::string origin;  // "-np", "HOROVOD_LOG_LEVEL", "job.yaml:3", "default"
  std::string said;    // with what a person writes in front of the value: "-np ", "X=", "x: "
  std::string text;
  std::string place = "";  // prefix of messages: "job.yaml:3: "

  // "job.yaml:3: params.cycle_time_ms", "--cycle-time-ms"
  std::string Name() const;
};

// "HVDRUN_SSH_PORT" of "ssh-port": each setting that people are shown has such a variable, whether
// it has another one that workers get or not. Empty for a list, which a variable cannot hold, and
// for an action.
std::string LauncherVariable(const Row& row);

// The sources of one row, strongest first. Empty variables count as unset.
std::vector<Source> SourcesOf(const Row& row, const Given& given);

// The same without what a stronger source of another row in its group overrules: a flag --hostfile
// overrules `launcher.hosts` in a file.
std::vector<Source> EffectiveSourcesOf(const Row& row, const Given& given);

// Whether the text is that of a row nobody has said anything about.
bool AsksForNothing(const Row& row, const std::string& text);

// The first of these settings that was said and asks for something, as it was said; empty: none.
std::string FirstSaid(const std::function<bool(const Row&)>& wanted, const Given& given);

// One line for each key of a file and each variable HVDRUN_X that no setting has.
std::vector<std::string> UnknownNames(const Given& given,
                                      const std::vector<std::string>& variables);

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTING_SOURCES_H_
