// How much of a job's output has been shown: a file of one line. The job's own file (`shown` in its
// folder) has what is known to be shown on any terminal. A machine that shows the output of another
// host's job keeps its own record next to its jobs, in case the connection breaks before the host
// has learned of it.
#ifndef HVD_LAUNCHER_DETACHED_SHOWN_H_
#define HVD_LAUNCHER_DETACHED_SHOWN_H_

#include <cstddef>
#include <string>

#include "launcher/detached/log_store.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class ShownRecord {
 public:
  // Creates nothing before the first Grow.
  explicit ShownRecord(std::string path) : path_(std::move(path)) {}

  // The recorded place; the beginning if the file is missing or invalid.
  LogPlace Read() const;
  // Advances the record to `place`; never moves it back. False: it cannot be written.
  bool Grow(LogPlace place);
  // Removes the record, unless another live process has advanced it.
  void Remove();

 private:
  bool Open();

  std::string path_;
  UniqueFd file_;
};

// The record on this machine for another host's job with this id; `jobs`: the folder of the
// detached jobs. Creates folders, for this user only. Keeps the newest kMostOwnRecords of the
// records left by broken connections.
Result<ShownRecord> OwnShownRecord(const std::string& jobs, const std::string& job_id);

inline constexpr size_t kMostOwnRecords = 100;

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_SHOWN_H_
