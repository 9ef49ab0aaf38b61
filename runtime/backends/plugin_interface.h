// libhvd.so and its plug-ins (libhvd_gloo.so, libhvd_mpi.so, libhvd_cuda.so) hand each other C++
// objects, so both must be built from the same headers by the same compiler. Each plug-in tells by
// which; one that tells otherwise is refused before it is called.
#ifndef HVD_RUNTIME_BACKENDS_PLUGIN_INTERFACE_H_
#define HVD_RUNTIME_BACKENDS_PLUGIN_INTERFACE_H_

#include <string>

#include "runtime/base/log.h"
#include "runtime/base/status.h"

namespace hvd {

// A name for the headers and the compiler of whatever this is linked into. Made while building.
const char* PluginInterface();

// The name of the function that a plug-in exports: const char* hvd_plugin_interface().
inline constexpr char kPluginInterfaceName[] = "hvd_plugin_interface";

// A plug-in that writes log lines exports this function as well.
inline constexpr char kPluginSetLogName[] = "hvd_plugin_set_log";
using PluginSetLog = void (*)(const LogSettings* settings);

// Has the plug-in log as this library does. kUnsupported: the library that was loaded from `path`
// is of another build.
Status AdmitPlugin(void* library, const std::string& path);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_PLUGIN_INTERFACE_H_
