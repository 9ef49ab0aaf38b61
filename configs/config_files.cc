#include "configs/config_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "configs/message_text.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

using Environment = std::vector<std::pair<std::string, std::string>>;

std::string ValueOf(const Environment& environment, const std::string& wanted) {
  for (const auto& [name, value] : environment) {
    if (name == wanted) return value;
  }
  return "";
}

// The user's configuration folder; empty: neither variable is set.
std::string UserFolder(const Environment& environment) {
  const std::string config = ValueOf(environment, "XDG_CONFIG_HOME");
  if (config.starts_with('/')) return config + "/hvdrun";
  const std::string home = ValueOf(environment, "HOME");
  return home.starts_with('/') ? home + "/.config/hvdrun" : "";
}

// Why others could have written there; empty: only root and this user can.
std::string WhoElseMayWrite(const struct stat& at) {
  if (at.st_uid != 0 && at.st_uid != ::geteuid()) return "belongs to another user";
  if ((at.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "may be written by others";
  return "";
}

// Why the file is not trusted: "it belongs to another user", "its folder may be written by others";
// empty: it is.
std::string DistrustReason(const struct stat& file, const struct stat& folder) {
  if (const std::string why = WhoElseMayWrite(file); !why.empty()) return "it " + why;
  if (const std::string why = WhoElseMayWrite(folder); !why.empty()) return "its folder " + why;
  return "";
}

void AddFile(const std::string& folder, StandingSettings& standing) {
  const std::string path = folder + "/config.yaml";
  const std::string ignored = Quoted(path, kMaxShownPath) + " is ignored: ";
  struct stat file, in;
  if (::stat(path.c_str(), &file) != 0 || ::stat(folder.c_str(), &in) != 0) {
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
      standing.warnings.push_back(ignored + std::generic_category().message(errno));
    return;
  }
  if (const std::string why = DistrustReason(file, in); !why.empty()) {
    standing.warnings.push_back(
        ignored + "it must be root's or yours and writable by nobody else, but " + why);
    return;
  }
  Result<std::string> text = ReadConfigFile(path);
  if (!text.ok()) {
    standing.warnings.push_back(text.status().message());
    return;
  }
  standing.files.push_back({path, std::move(*text)});
}

}  // namespace

Result<std::string> ReadConfigFile(const std::string& path) {
  std::string shown = "the configuration file " + Quoted(path, kMaxShownPath);
  Result<std::string> text = ReadFileWithin(path, {.bytes = kMaxConfigBytes});
  if (!text.ok())
    return InvalidArgument(shown + " " + text.status().message() + "; name a YAML file");
  return text;
}

StandingSettings ReadStandingSettings(const Environment& environment,
                                      const std::string& machine_folder) {
  StandingSettings standing;
  for (const auto& [name, value] : environment) standing.variables.push_back(name);
  if (const std::string folder = UserFolder(environment); !folder.empty())
    AddFile(folder, standing);
  AddFile(machine_folder, standing);
  return standing;
}

}  // namespace hvd
