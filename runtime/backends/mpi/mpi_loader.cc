// The only file of this folder that is part of libhvd.so.
#include <dlfcn.h>
#include <unistd.h>

#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/backends/plugin_interface.h"
#include "runtime/base/loading/library_dir.h"

namespace hvd {
namespace {

constexpr char kLibrary[] = "libhvd_mpi.so";

}  // namespace

Result<MpiPlugin> LoadMpiPlugin(const std::string& folder) {
  std::string path = LibraryPath(kLibrary, folder);
  if (::access(path.c_str(), F_OK) != 0) {
    return Unsupported("MPI cannot be used because there is no " + path +
                       ": this hvdrun was built without MPI; build it where Open MPI is installed "
                       "(Debian: libopenmpi-dev)");
  }
  // Never closed: MPI cannot be initialised a second time.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unsupported("MPI cannot be used because " + std::string(kLibrary) +
                       " cannot be loaded: " + LoaderError() +
                       "; install the MPI that it was built with (libmpi.so.40 is of Open MPI 4 "
                       "and 5; Debian: libopenmpi3)");
  }
  if (Status status = AdmitPlugin(library, path); !status.ok())
    return Unsupported("MPI cannot be used because " + status.message());
  MpiPlugin plugin;
  plugin.start = reinterpret_cast<MpiPlugin::Start>(::dlsym(library, kMpiStartName));
  plugin.join = reinterpret_cast<MpiPlugin::Join>(::dlsym(library, kMpiJoinName));
  plugin.finish = reinterpret_cast<MpiPlugin::Finish>(::dlsym(library, kMpiFinishName));
  if (plugin.start == nullptr || plugin.join == nullptr || plugin.finish == nullptr) {
    return Unsupported("MPI cannot be used because " + path +
                       " is not of this version of hvdrun; install both from one build");
  }
  return plugin;
}

}  // namespace hvd
