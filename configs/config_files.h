// Reads configuration files: that of --config-file, and the standing files /etc/hvdrun/config.yaml
// and ~/.config/hvdrun/config.yaml. Used by hvdrun, never by its agents.
#ifndef HVD_CONFIGS_CONFIG_FILES_H_
#define HVD_CONFIGS_CONFIG_FILES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// Returns the text of a file, or one sentence why it cannot be read.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Reads a whole configuration file; refuses directories and files over 1 MiB.
Result<std::string> ReadConfigFile(const std::string& path);

struct StandingFile {
  std::string path;
  std::string text;
};

struct StandingSettings {
  std::vector<StandingFile> files;     // strongest first: the user's, then the machine's
  std::vector<std::string> warnings;   // one per existing file that was not read
  std::vector<std::string> variables;  // names of all variables, to detect misspelt ones
};

// `environment` is that of this process, (name, value). Skips a file, with a warning, unless it and
// its folder belong to root or this user and no one else may write there, because settings can run
// commands as the reader. A missing file is not an error.
StandingSettings ReadStandingSettings(
    const std::vector<std::pair<std::string, std::string>>& environment,
    const std::string& machine_folder = "/etc/hvdrun");

}  // namespace hvd

#endif  // HVD_CONFIGS_CONFIG_FILES_H_
