// Stands for a plug-in of this build that writes log lines.
#include "runtime/backends/plugin_interface.h"
#include "runtime/base/log.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* hvd_plugin_interface() { return hvd::PluginInterface(); }
EXPORT void hvd_plugin_set_log(const hvd::LogSettings* settings) { hvd::SetLog(*settings); }
EXPORT void hvd_test_log() {
  hvd::LogInfo("told");
  hvd::LogDebug("not told");
}
