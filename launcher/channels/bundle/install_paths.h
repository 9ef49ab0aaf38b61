// Locates the parts of an installation. Reads folders; any thread.
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

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_INSTALL_PATHS_H_
