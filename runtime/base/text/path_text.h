// Paths as text: no file system access. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_

#include <string>
#include <string_view>

namespace hvd {

// `path` relative to `folder`; an absolute path is unchanged.
inline std::string PathIn(std::string_view folder, std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  return std::string(folder).append("/").append(path);
}

// The folder part of the path; "." without a slash.
inline std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_PATH_TEXT_H_
