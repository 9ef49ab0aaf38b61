#include "runtime/backends/plugin_interface.h"

#include <dlfcn.h>

#include <string_view>

namespace hvd {

Status AdmitPlugin(void* library, const std::string& path) {
  auto tell = reinterpret_cast<const char* (*)()>(::dlsym(library, kPluginInterfaceName));
  if (tell == nullptr || std::string_view(tell()) != PluginInterface()) {
    return Unsupported(path +
                       " is not of the same build as libhvd.so, and to call it would crash; " +
                       "install both from one build");
  }
  auto set_log = reinterpret_cast<PluginSetLog>(::dlsym(library, kPluginSetLogName));
  if (set_log != nullptr) set_log(&CurrentLog());
  return Status::Ok();
}

}  // namespace hvd
