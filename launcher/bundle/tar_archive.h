// TarArchive: files as one string that every tar reads (the ustar format of POSIX). Pure.
#ifndef HVD_LAUNCHER_BUNDLE_TAR_ARCHIVE_H_
#define HVD_LAUNCHER_BUNDLE_TAR_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

class TarArchive {
 public:
  // `path` has "/" between its parts and none at its ends; folders need no entry of their own.
  // Owner and time are the same for all files, so equal files make equal archives.
  // kInvalidArgument: a path that the format cannot hold (some 250 bytes).
  Status Add(std::string_view path, uint32_t mode, std::string_view bytes);
  // The whole archive; once.
  std::string Take();

 private:
  std::string bytes_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_BUNDLE_TAR_ARCHIVE_H_
