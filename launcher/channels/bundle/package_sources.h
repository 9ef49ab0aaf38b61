// Where the sources of the package `horovod` lie. Reads a file; any thread.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_

#include <string>

#include "launcher/channels/bundle/install_paths.h"

namespace hvd {

// The folder of the package. In a wheel, what PYTHONPATH of workers leads to is only a signpost.
std::string PackageSources(const InstallPaths& paths);

// A sentence where the distribution `horovod` is installed beside a wheel: each overwrites files of
// the other's folder, and takes some along when it is removed. Empty: it is not.
std::string OverlaidPackage(const InstallPaths& paths);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_PACKAGE_SOURCES_H_
