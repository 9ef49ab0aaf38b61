// The only file of this folder that is part of libhvd.so.
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/backends/plugin_interface.h"

namespace hvd {

Result<MpiPlugin> LoadMpiPlugin(const std::string& folder) {
  const Plugin library = {.library = "libhvd_mpi.so",
                          .lacks = "MPI cannot be used",
                          .built_by =
                              "without MPI; build it where Open MPI is installed (Debian: "
                              "libopenmpi-dev)",
                          .remedy =
                              "install the MPI that it was built with (libmpi.so.40 is of "
                              "Open MPI 4 and 5; Debian: libopenmpi3)"};
  const char* const names[] = {kMpiStartName, kMpiJoinName, kMpiFinishName};
  const Result<std::vector<void*>> functions = LoadPlugin(library, names, folder);
  if (!functions.ok()) return functions.status();
  MpiPlugin plugin;
  plugin.start = reinterpret_cast<MpiPlugin::Start>((*functions)[0]);
  plugin.join = reinterpret_cast<MpiPlugin::Join>((*functions)[1]);
  plugin.finish = reinterpret_cast<MpiPlugin::Finish>((*functions)[2]);
  return plugin;
}

}  // namespace hvd
