// Following the output of a detached job, and the small parts that its verbs share.
#ifndef HVD_LAUNCHER_DETACHED_FOLLOW_H_
#define HVD_LAUNCHER_DETACHED_FOLLOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/detached/detached_job.h"
#include "launcher/detached/log_store.h"
#include "runtime/base/status.h"

namespace hvd {

// Prints the output of a job as it comes.
class LogFollower {
 public:
  LogFollower(DetachedJob job, LogPlace from)
      : job_(std::move(job)), reader_(job_.folder, from), place_(from) {}

  enum class Step {
    kPrinted,
    kHeld,    // `fd` takes no more now: its reader is slow, and a signal may have come
    kIdle,    // nothing new within a moment
    kEnded,   // all is printed, and the job has ended
    kBroken,  // nobody reads what is printed
  };
  // Prints what is new to `fd`; waits a moment where there is nothing, or nobody reads.
  Step Next(int fd);

  // Up to where `fd` has taken the output.
  LogPlace place() const { return place_; }
  const DetachedJob& job() const { return job_; }

 private:
  Step Print(int fd);

  DetachedJob job_;
  LogReader reader_;
  LogPlace place_;
  std::string note_, text_;  // what is to be printed next; the note is no part of the output
  bool line_ended_ = true;
};

// SIGINT and SIGTERM are noted instead of ending this process, as long as this object lives. At
// most one at a time.
class InterruptNote {
 public:
  InterruptNote();
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  // The last signal since the last call; 0: none.
  int Pop();
};

// The output files of one rank, growing and rotated (output_files.h).
class RankFollower {
 public:
  explicit RankFollower(std::string folder) : folder_(std::move(folder)) {}
  // Prints what is new of stdout and stderr to ours. False: there was nothing.
  bool Print();

 private:
  struct File {
    UniqueFd fd;
    bool begun = false;
  };
  bool Print(const char* name, int to, File& file);

  const std::string folder_;
  File out_, err_;
};

// "<ranks folder>/rank.07" of each rank.
std::map<uint32_t, std::string> RankFolders(const DetachedJob& job);
// The last line that is not empty, of stdout or else of stderr.
std::string LastLineOf(const std::string& rank_folder);

// "30s", "10m", "2h", "1d", "2026-11-28", "2026-11-28T16:00:05" as nanoseconds since 1970; in the
// local time zone.
std::optional<int64_t> ParseSince(const std::string& text, int64_t now_ns);

// The sentence where logind will end the job at logout; empty: it will not, as its files say.
// `root`: "" but in tests.
std::string LogindNote(const std::string& root);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_FOLLOW_H_
