// The door of libhvd_gloo.so.
#include "runtime/backends/cross_loader.h"
#include "runtime/backends/gloo/gloo_cross.h"
#include "runtime/backends/plugin_interface.h"

extern "C" __attribute__((visibility("default"))) const char* hvd_plugin_interface() {
  return hvd::PluginInterface();
}

extern "C" __attribute__((visibility("default"))) hvd::Cross* hvd_cross_create(
    const hvd::CrossOptions* options, hvd::Directory* directory, hvd::Status* status) {
  hvd::Result<std::unique_ptr<hvd::GlooCross>> cross = hvd::GlooCross::Open(*options, *directory);
  if (cross.ok()) return cross->release();
  *status = cross.status();
  return nullptr;
}
