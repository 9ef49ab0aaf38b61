// Reads configuration files: the one that --config-file names, and those that are always there,
// /etc/hvdrun/config.yaml and ~/.config/hvdrun/config.yaml. By hvdrun where a user starts it, never
// by its agents.
#ifndef HVD_CONFIGS_CONFIG_FILES_H_
#define HVD_CONFIGS_CONFIG_FILES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The text of a file, or one sentence why it cannot be read.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Reads a whole configuration file; refuses directories and files over 1 MiB.
Result<std::string> ReadConfigFile(const std::string& path);

struct StandingFile {
  std::string path;
  std::string text;
};

struct StandingSettings {
  std::vector<StandingFile> files;     // strongest first: the user's, then the machine's
  std::vector<std::string> warnings;   // one for each file that is there and was not read
  std::vector<std::string> variables;  // names of all variables, to find those that are misspelt
};

// `environment` is that of this process, (name, value). A file is left out, with a warning, unless
// it and its folder belong to root or this user and nobody else may write there: who can write a
// file of settings can run commands as its reader. One that is missing is no warning.
StandingSettings ReadStandingSettings(
    const std::vector<std::pair<std::string, std::string>>& environment,
    const std::string& machine_folder = "/etc/hvdrun");

}  // namespace hvd

#endif  // HVD_CONFIGS_CONFIG_FILES_H_
