// Following the output of a detached job, and helpers of its subcommands.
#ifndef HVD_LAUNCHER_DETACHED_FOLLOW_H_
#define HVD_LAUNCHER_DETACHED_FOLLOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/detached/detached_job.h"
#include "launcher/detached/log_store.h"
#include "launcher/detached/output_source.h"
#include "launcher/detached/shown.h"
#include "runtime/base/status.h"

namespace hvd {

// The stored output of a job of this machine.
class LocalOutput final : public OutputSource {
 public:
  // Does not record what was shown.
  LocalOutput(DetachedJob job, LogPlace from) : job_(std::move(job)), reader_(job_.folder, from) {}
  // Continues where the last viewer stopped, and records what was shown.
  explicit LocalOutput(DetachedJob job)
      : job_(std::move(job)), shown_(job_.PathOf("shown")), reader_(job_.folder, shown_->Read()) {}

  Event Next(OutputPiece* piece) override;
  void Shown(LogPlace place) override {
    if (shown_) (void)shown_->Grow(place);
  }
  void StopJob() override;
  const std::string& job_name() const override { return job_.name; }
  const DetachedEnd& end() const override { return *job_.end; }
  const DetachedJob& job() const { return job_; }

 private:
  DetachedJob job_;
  std::optional<ShownRecord> shown_;
  LogReader reader_;
};

// Prints the output of a job as it arrives. Never blocks for long, so signals are noticed even if
// the reader of stdout is slow.
class LogFollower {
 public:
  // `source` is told about each write.
  explicit LogFollower(OutputSource& source) : source_(source) {}

  enum class Step {
    kPrinted,
    kHeld,        // `fd` accepts no more now: slow reader, or a signal arrived
    kIdle,        // nothing new for a moment
    kEnded,       // all is printed, and the job has ended
    kReaderGone,  // the reader of `fd` has gone
    kSourceGone,  // the connection to the source broke
  };
  // Prints new output to `fd`; waits a moment if there is none, or the reader is slow.
  Step Next(int fd);

  // The end of the output written to `fd`.
  LogPlace place() const { return place_; }

 private:
  // Number of bytes written; nothing: the reader has gone.
  std::optional<size_t> Write(int fd, std::string_view text, bool of_output);
  Step Print(int fd);

  OutputSource& source_;
  LogPlace place_;
  std::string note_, text_;  // to be printed next; the note is not part of the output
  bool line_ended_ = true;
};

// Records SIGINT and SIGTERM instead of letting them end this process, during its lifetime. At most
// one object at a time.
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
  // Prints new output to this process's stdout and stderr. False: none.
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

// A warning if, by its configuration files, logind will end the job at logout; else empty. `root`:
// "" except in tests.
std::string LogindNote(const std::string& root);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_FOLLOW_H_
