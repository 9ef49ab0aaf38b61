#include "launcher/channels/bundle/package_sources.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "configs/message_text.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// The folder of the libraries in a wheel's package; empty: this is no wheel.
fs::path LibrariesOfWheel(const InstallPaths& paths) {
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  return libraries / "python" == fs::path(paths.python) ? libraries : fs::path();
}

}  // namespace

std::string PackageSources(const InstallPaths& paths) {
  const fs::path libraries = LibrariesOfWheel(paths);
  if (libraries.empty()) return paths.python + "/horovod";
  // Of an editable installation the sources lie elsewhere: a line of a file says where.
  std::ifstream file(libraries / "sources");
  std::string sources;
  return std::getline(file, sources) && !sources.empty() ? sources
                                                         : libraries.parent_path().string();
}

std::string OverlaidPackage(const InstallPaths& paths) {
  const fs::path libraries = LibrariesOfWheel(paths);
  if (libraries.empty()) return "";
  std::error_code error;
  const fs::path packages = libraries.parent_path().parent_path();
  for (fs::directory_iterator entry(packages, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with("horovod-") && name.ends_with(".dist-info") &&
        !name.ends_with("+hvdrun.dist-info"))  // packaging/wheel/shim_wheel.py
      return "the distributions horovod and hvdrun are both installed in " +
             Printable(packages.string(), kMaxShownPath) +
             ", and each has overwritten files of the other in its folder horovod; mend it with: "
             "pip "
             "uninstall -y horovod hvdrun && pip install hvdrun";
  }
  return "";
}

}  // namespace hvd
