// Locates the sources of the package `horovod`. Reads a file; any thread.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_

#include <string>

#include "launcher/channels/bundle/install_paths.h"

namespace hvd {

// The folder of the package. In a wheel, the workers' PYTHONPATH has only a stub that points to it.
std::string PackageSources(const InstallPaths& paths);

// A warning if the distribution `horovod` is installed along with a wheel of this project: each
// overwrites files of the other, and uninstalling one removes files of both. Empty: it is not.
std::string OverlaidPackage(const InstallPaths& paths);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_
