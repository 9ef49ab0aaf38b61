// The functions that libhvd_mpi.so exports.
#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/backends/mpi/mpi_world.h"
#include "runtime/backends/plugin_interface.h"

#define HVD_MPI_EXPORT extern "C" __attribute__((visibility("default")))

HVD_MPI_EXPORT const char* hvd_plugin_interface() { return hvd::PluginInterface(); }

HVD_MPI_EXPORT void hvd_plugin_set_log(const hvd::LogSettings* settings) { hvd::SetLog(*settings); }

HVD_MPI_EXPORT bool hvd_mpi_start(bool one_thread, hvd::MpiFacts* facts, hvd::Status* status) {
  const hvd::Result<hvd::MpiFacts> found = hvd::MpiLibrary::StartBeside(one_thread);
  if (found.ok()) *facts = *found;
  *status = found.status();
  return found.ok();
}

HVD_MPI_EXPORT hvd::MpiWorld* hvd_mpi_join(const hvd::MpiJoinOptions* options,
                                           hvd::Status* status) {
  hvd::Result<std::unique_ptr<hvd::JoinedWorld>> world = hvd::JoinedWorld::Join(*options);
  if (world.ok()) return (*world).release();
  *status = world.status();
  return nullptr;
}

HVD_MPI_EXPORT void hvd_mpi_finish() { hvd::MpiLibrary::FinishIfStarted(); }
