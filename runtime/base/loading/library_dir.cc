#include "runtime/base/loading/library_dir.h"

#include <dlfcn.h>

#include "runtime/base/text/path_text.h"

namespace hvd {

std::string LibraryDir() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&LibraryDir), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  return FolderOf(info.dli_fname);
}

std::string LibraryPath(const std::string& library, const std::string& folder) {
  return PathIn(folder.empty() ? LibraryDir() : folder, library);
}

std::string LoaderError() {
  const char* words = ::dlerror();
  return words == nullptr ? "the loader gave no reason" : words;
}

}  // namespace hvd
