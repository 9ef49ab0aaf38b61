#include "runtime/backends/inter_host_loader.h"

#include <dlfcn.h>

#include "runtime/backends/plugin_interface.h"
#include "runtime/base/loading/library_dir.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr char kLibrary[] = "libhvd_gloo.so";

}  // namespace

Result<std::unique_ptr<InterHostComm>> OpenInterHostComm(const InterHostOptions& options,
                                                         KvStore& directory,
                                                         const std::string& folder) {
  std::string path = LibraryPath(kLibrary, folder);
  // Never closed: its threads and the type information of its exceptions must stay.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unsupported(
        Format("this job has several hosts and rank {} cannot load {}, which connects them, "
               "because: {}; install Gloo (Debian: libgloo0) or build with it (libgloo-dev)",
               options.rank, kLibrary, LoaderError()));
  }
  HVD_RETURN_IF_ERROR(AdmitPlugin(library, path));
  auto create = reinterpret_cast<InterHostCreate>(::dlsym(library, kInterHostCreateName));
  if (create == nullptr) {
    return Unsupported(path + " is not of this version of hvdrun, because it has no " +
                       kInterHostCreateName + "; install both from one build");
  }
  Status status;
  std::unique_ptr<InterHostComm> comm(create(&options, &directory, &status));
  if (comm == nullptr) return status;
  return comm;
}

bool CanOpenInterHostComm() {
  static const bool can = [] {
    const std::string path = LibraryPath(kLibrary);
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && AdmitPlugin(library, path).ok();
  }();
  return can;
}

}  // namespace hvd
