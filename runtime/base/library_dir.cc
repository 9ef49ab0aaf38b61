#include "runtime/base/library_dir.h"

#include <dlfcn.h>

namespace hvd {

std::string LibraryDir() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&LibraryDir), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

}  // namespace hvd
