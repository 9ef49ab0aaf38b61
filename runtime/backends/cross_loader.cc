#include "runtime/backends/cross_loader.h"

#include <dlfcn.h>

#include "runtime/backends/plugin_interface.h"
#include "runtime/base/own_folder.h"

namespace hvd {
namespace {

constexpr char kLibrary[] = "libhvd_gloo.so";

std::string LoaderWords() {
  const char* words = ::dlerror();
  return words == nullptr ? "the loader gave no reason" : words;
}

}  // namespace

Result<std::unique_ptr<Cross>> OpenCross(const CrossOptions& options, Directory& directory,
                                         const std::string& folder) {
  std::string path = (folder.empty() ? OwnFolder() : folder) + "/" + kLibrary;
  // Never closed: its threads and the type information of its exceptions must stay.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unsupported("this job has several hosts and rank " + std::to_string(options.rank) +
                       " cannot load " + kLibrary +
                       ", which connects them, because: " + LoaderWords() +
                       "; install Gloo (Debian: libgloo0) or build with it (libgloo-dev)");
  }
  if (Status status = CheckPlugin(library, path); !status.ok()) return status;
  auto create = reinterpret_cast<CrossCreate>(::dlsym(library, kCrossCreateName));
  if (create == nullptr) {
    return Unsupported(path + " is not of this version of hvdrun, because it has no " +
                       kCrossCreateName + "; install both from one build");
  }
  Status status;
  std::unique_ptr<Cross> cross(create(&options, &directory, &status));
  if (cross == nullptr) return status;
  return cross;
}

bool CanOpenCross() {
  static const bool can = [] {
    const std::string path = OwnFolder() + "/" + kLibrary;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && CheckPlugin(library, path).ok();
  }();
  return can;
}

}  // namespace hvd
