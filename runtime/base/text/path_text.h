// Paths as texts: nothing is looked up. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_

#include <string>
#include <string_view>

namespace hvd {

// The meaning of `path` to a process in `folder`; an absolute path is itself.
inline std::string PathIn(std::string_view folder, std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  return std::string(folder).append("/").append(path);
}

// Where the file of this path lies; "." without a slash.
inline std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_
