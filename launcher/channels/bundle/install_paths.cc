#include "launcher/channels/bundle/install_paths.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "configs/message_text.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

struct Wheel {
  fs::path package;
  fs::file_time_type installed;
};

// Sets `found` to the package in `packages` if there is one and it is newer.
void Consider(const fs::path& packages, Wheel* found) {
  std::error_code error;
  const fs::path libraries = packages / "horovod" / "lib";
  if (!fs::exists(libraries / "libhvd.so", error)) return;
  const fs::file_time_type installed = fs::last_write_time(libraries, error);
  if (error || (!found->package.empty() && installed <= found->installed)) return;
  *found = {packages / "horovod", installed};
}

fs::path PackageOfWheel(const fs::path& prefix) {
  Wheel found;
  Consider(prefix, &found);
  for (const char* folder : {"lib", "lib64"}) {
    std::error_code error;
    for (fs::directory_iterator entry(prefix / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!entry->path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        Consider(entry->path() / packages, &found);
    }
  }
  return found.package;
}

}  // namespace

InstallPaths PathsBeside(const std::string& executable) {
  std::error_code error;
  const std::string bin = executable.substr(0, executable.rfind('/'));
  const std::string prefix = bin.substr(0, bin.rfind('/'));
  const std::string libraries = prefix + "/" HVD_LIBDIR;
  const std::string startup = "/common/startup";
  const InstallPaths tree = {libraries + "/libhvd.so", libraries + "/hvdrun/python",
                             libraries + "/hvdrun/python/horovod" + startup};
  if (fs::exists(tree.runtime, error)) return tree;
  const fs::path package = PackageOfWheel(prefix);
  if (package.empty()) return tree;
  const std::string inside = (package / "lib").string();
  // Of an editable installation the sources lie elsewhere.
  std::ifstream file(inside + "/sources");
  std::string sources;
  if (!std::getline(file, sources) || sources.empty()) sources = package.string();
  return {inside + "/libhvd.so", inside + "/python", sources + startup};
}

namespace {

namespace fs = std::filesystem;

// The folder of the libraries in a wheel's package; empty: not a wheel.
fs::path LibrariesOfWheel(const InstallPaths& paths) {
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  return libraries / "python" == fs::path(paths.python) ? libraries : fs::path();
}

}  // namespace

std::string PackageSources(const InstallPaths& paths) {
  const fs::path libraries = LibrariesOfWheel(paths);
  if (libraries.empty()) return paths.python + "/horovod";
  // In an editable installation the sources are elsewhere; this file names the folder.
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
