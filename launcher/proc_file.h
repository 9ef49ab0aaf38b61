// Reading a small file of /proc whole.
#ifndef HVD_LAUNCHER_PROC_FILE_H_
#define HVD_LAUNCHER_PROC_FILE_H_

#include <string>

namespace hvd {

// The text of a file, at most 64 MiB of it; empty when it cannot be read. Never waits for somebody to write it.
std::string ReadSmallFile(const std::string& path);

// `name` as in "self/cgroup".
inline std::string ReadProcFile(const std::string& name) { return ReadSmallFile("/proc/" + name); }

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROC_FILE_H_
