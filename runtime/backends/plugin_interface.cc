#include "runtime/backends/plugin_interface.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "runtime/base/loading/library_dir.h"

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

Result<std::vector<void*>> LoadPlugin(const Plugin& plugin, std::span<const char* const> functions,
                                      const std::string& folder) {
  const std::string path = LibraryPath(plugin.library, folder);
  const std::string lacks = plugin.lacks + " because ";
  if (::access(path.c_str(), F_OK) != 0)
    return Unsupported(lacks + "there is no " + path + ": this hvdrun was built " +
                       plugin.built_by);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unsupported(lacks + plugin.library + " cannot be loaded: " + LoaderError() +
                       (plugin.remedy.empty() ? "" : "; ") + plugin.remedy);
  }
  if (Status status = AdmitPlugin(library, path); !status.ok())
    return Unsupported(lacks + status.message());
  std::vector<void*> found;
  for (const char* name : functions) {
    found.push_back(::dlsym(library, name));
    if (found.back() == nullptr) {
      return Unsupported(lacks + path +
                         " is not of this version of hvdrun; install both from one build");
    }
  }
  return found;
}

}  // namespace hvd
