// The entry points of libhvd_gloo.so.
#include "runtime/backends/gloo/gloo_inter_host_comm.h"
#include "runtime/backends/inter_host_loader.h"
#include "runtime/backends/plugin_interface.h"

extern "C" __attribute__((visibility("default"))) const char* hvd_plugin_interface() {
  return hvd::PluginInterface();
}

extern "C" __attribute__((visibility("default"))) hvd::InterHostComm* hvd_inter_host_create(
    const hvd::InterHostOptions* options, hvd::KvStore* directory, hvd::Status* status) {
  hvd::Result<std::unique_ptr<hvd::GlooInterHostComm>> comm =
      hvd::GlooInterHostComm::Open(*options, *directory);
  if (comm.ok()) return comm->release();
  *status = comm.status();
  return nullptr;
}
