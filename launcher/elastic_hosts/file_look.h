// A look at a file that others replace or write while it is watched.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_FILE_LOOK_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_FILE_LOOK_H_

#include <cstdint>
#include <string>

namespace hvd {

// Equal stamps: the file is the same. It is that of the file behind all symbolic links, so that the
// swap of one (`..data` of a ConfigMap) is seen.
struct FileStamp {
  int error = 0;  // errno, when there is no file to look at
  uint64_t device = 0, inode = 0;
  int64_t size = 0, modified_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// May take its time where the file is on a network.
FileStamp StampOf(const std::string& path);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_FILE_LOOK_H_
