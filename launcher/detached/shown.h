// Up to where the output of a job has been shown: a file of one line. The job's own (`shown` in its
// folder) has what every terminal is known to have taken. A machine that shows the output of a job
// of another host has a record of its own beside its jobs: what it has shown is known there also
// when the word of it was lost with the connection.
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
  // Nothing is made before the first Grow.
  explicit ShownRecord(std::string path) : path_(std::move(path)) {}

  // The beginning, where there is no such file or no place in it.
  LogPlace Read() const;
  // It is this place from now on, unless it was a later one. False: it cannot be written.
  bool Grow(LogPlace place);
  // It goes away, unless another process has grown it and lives.
  void Remove();

 private:
  bool Open();

  std::string path_;
  UniqueFd file_;
};

// The record on this machine of the job with this id, of another host; `jobs`: the folder of the
// detached jobs. Makes the folders, for this user only. Of the records that connections left behind
// when they broke, the newest are kept.
Result<ShownRecord> OwnShownRecord(const std::string& jobs, const std::string& job_id);

inline constexpr size_t kMostOwnRecords = 100;

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_SHOWN_H_
