#include "launcher/elastic_hosts/file_look.h"

#include <sys/stat.h>

#include <cerrno>

namespace hvd {

FileStamp StampOf(const std::string& path) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {.error = errno};
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = info.st_size,
          .modified_ns = info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

}  // namespace hvd
