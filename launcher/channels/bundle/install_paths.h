// Locates the parts of an installation and the sources of the package `horovod`. Reads folders; any
// thread.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_INSTALL_PATHS_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_INSTALL_PATHS_H_

#include <string>

namespace hvd {

// Paths of this installation on the agent's host.
struct InstallPaths {
  std::string runtime;       // libhvd.so
  std::string python;        // the folder that holds the package `horovod`
  std::string startup = {};  // the folder of the sitecustomize.py of --torch-backend hvd
};

// An installed tree, a build tree or a wheel in a Python environment: README.md has their layouts.
InstallPaths PathsBeside(const std::string& executable);

// The folder of the package. In a wheel, the workers' PYTHONPATH has only a stub that points to it.
std::string PackageSources(const InstallPaths& paths);

// A warning if the distribution `horovod` is installed along with a wheel of this project: each
// overwrites files of the other, and uninstalling one removes files of both. Empty: it is not.
std::string OverlaidPackage(const InstallPaths& paths);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_INSTALL_PATHS_H_
