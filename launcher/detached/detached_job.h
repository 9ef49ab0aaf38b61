// The folder of a detached job and its files. One folder per job of the user:
//   job           what it is: JSON, written once, before the job starts
//   exit          the exit code of its hvdrun, written by it as the last thing; "---" before
//   end           how it ended: JSON, written by the keeper after the last output
//   output.*, times.*   its output (log_store.h)
//   shown         up to where hvdrun attach has shown the output (shown.h)
//   ranks/        the output of each rank (--output-filename), unless the user named a folder
//   error.json    the first cause (--error-file), unless the user named a file
//   hosts         what hvdrun scale and drain want (steered_watch.h)
//   standby       the process that takes over when hvdrun is killed (standby.h): as `job`
//   lock          held by the keeper
//   room          as long as the job runs: makes room for `end` on a full disk
// Folders are 0700 and files 0600: no other user can list, read or steer a job.
#ifndef HVD_LAUNCHER_DETACHED_DETACHED_JOB_H_
#define HVD_LAUNCHER_DETACHED_DETACHED_JOB_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/detached/log_store.h"
#include "launcher/process/one_process.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

struct DetachedEnd {
  int exit_code = 0;
  int64_t at = 0;      // seconds since 1970
  std::string reason;  // one sentence where hvdrun itself could not say it; usually empty
};

struct DetachedJob {
  std::string name, folder;
  std::string id;         // of the job
  std::string command;    // as it was typed, printable
  std::string directory;  // where it was started
  std::string host;       // the machine of its hvdrun
  std::string place;      // JobPlaceText of it
  pid_t driver = 0;
  uint64_t driver_start_ticks = 0;
  std::string mark;        // of the packets in its output (printed_output.h); empty: no packets
  int pipe = -1;           // in the driver: the read end of its output pipe
  int64_t started_at = 0;  // seconds since 1970
  bool elastic = false;
  uint64_t output_limit_bytes = 0;
  std::string ranks_folder;        // with the output of each rank
  std::string error_file;          // if it fails
  std::optional<DetachedEnd> end;  // from another file

  std::string PathOf(std::string_view file) const { return folder + "/" + std::string(file); }
};

// $XDG_STATE_HOME/hvdrun/jobs, or ~/.local/state/hvdrun/jobs; empty where neither is set.
std::string DetachedJobsFolder(
    const std::function<std::optional<std::string>(const char* name)>& variable);

// "train" for python train.py: the first part of the job's name. Pure.
std::string NameFor(const std::vector<std::string>& command);

// Creates a folder and its parents, for this user only. Fails if it or its parent belongs to
// another user or is a link. `cannot`: the text before the path in the error message.
Status MakePrivateFolder(const std::string& path, const std::string& cannot);

// Creates the folder of a new job below `jobs` with the first free name: train-1, train-2 ... Fails
// if `jobs` belongs to another user; makes it 0700 if it is open to others.
Result<std::string> MakeJobFolder(const std::string& jobs, const std::string& first);

std::string DetachedJobJson(const DetachedJob& job);
Result<DetachedJob> ParseDetachedJob(std::string_view text);
std::string DetachedEndJson(const DetachedEnd& end);
Result<DetachedEnd> ParseDetachedEnd(std::string_view text);

// An entry in the jobs folder that is not a valid job.
struct DamagedJob {
  std::string name, path;
  std::string reason;     // a sentence that follows the path
  bool removable = true;  // it belongs to this user
};

// All jobs, oldest first, without incomplete and damaged ones; the latter go to `damaged`. Empty if
// there is no folder; an error if it belongs to another user or is not a folder.
Result<std::vector<DetachedJob>> ReadDetachedJobs(const std::string& jobs,
                                                  std::vector<DamagedJob>* damaged = nullptr);
// One, by its folder.
Result<DetachedJob> ReadDetachedJob(const std::string& folder);
// The job with this name; for an empty name the only job that has not ended. kInvalidArgument
// otherwise.
Result<DetachedJob> DetachedJobNamed(const std::vector<DetachedJob>& jobs, std::string_view name);

// It was started on this machine since it booted, in this pid namespace.
bool IsOfThisMachine(const DetachedJob& job);
// Its hvdrun, if it runs; else the standby that takes over.
std::optional<ProcessInfo> DriverOf(const DetachedJob& job);
// The exit code that hvdrun wrote; nothing: it was killed, or has not ended.
std::optional<int> ReadExitCode(const DetachedJob& job);
// Creates the file with space for any exit code, so that the code can be written on a full disk.
Status PrepareExitCode(const DetachedJob& job);
void WriteExitCode(const DetachedJob& job, int code);
// The keeper of the job in this folder is alive, or is still starting.
bool IsKept(const std::string& folder);

// Removes the folder of a job that has ended, or a damaged one.
Status RemoveDetachedJob(const std::string& folder);

// "running", "ended", "failed", or "elsewhere" of a job of another machine.
std::string DetachedState(const DetachedJob& job);
// The table of hvdrun ps; empty: no jobs.
std::string DetachedTable(const std::vector<DetachedJob>& jobs, int64_t now);
// For --json: a list of objects. `view` of one job: its hvdrun's answer, or empty.
std::string DetachedListJson(const std::vector<DetachedJob>& jobs);
// The lists that hosts printed, by host name, as one object; null for a host whose output is not
// JSON.
std::string ListsOfHostsJson(const std::vector<std::pair<std::string, std::string>>& lists);
std::string DetachedStatusJson(const DetachedJob& job, const std::string& view);
// Why a job ended, from its error file; empty: it succeeded, or the file is missing.
std::string ReportOf(const DetachedJob& job);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_DETACHED_JOB_H_
