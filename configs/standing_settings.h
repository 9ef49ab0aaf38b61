// What is set for all jobs of a machine or of a user: /etc/hvdrun/config.yaml and
// ~/.config/hvdrun/config.yaml. Read by hvdrun where a user starts it, never by its agents.
#ifndef HVD_CONFIGS_STANDING_SETTINGS_H_
#define HVD_CONFIGS_STANDING_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

namespace hvd {

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

#endif  // HVD_CONFIGS_STANDING_SETTINGS_H_
