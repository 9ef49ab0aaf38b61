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
#include "launcher/detached/output_source.h"
#include "launcher/detached/shown.h"
#include "runtime/base/status.h"

namespace hvd {

// The output of a job of this machine, as it is kept.
class LocalOutput final : public OutputSource {
 public:
  // What is shown is recorded nowhere.
  LocalOutput(DetachedJob job, LogPlace from) : job_(std::move(job)), reader_(job_.folder, from) {}
  // From where it was left, which is recorded again.
  explicit LocalOutput(DetachedJob job)
      : job_(std::move(job)), shown_(job_.PathOf("shown")), reader_(job_.folder, shown_->Read()) {}

  News Next(OutputPiece* piece) override;
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

// Prints the output of a job as it comes. A signal that comes meanwhile is noticed within a moment,
// also where the reader of what is printed is slow.
class LogFollower {
 public:
  // `source` hears of each write.
  explicit LogFollower(OutputSource& source) : source_(source) {}

  enum class Step {
    kPrinted,
    kHeld,        // `fd` takes no more now: its reader is slow, or a signal came
    kIdle,        // nothing new within a moment
    kEnded,       // all is printed, and the job has ended
    kReaderGone,  // nobody reads what is printed
    kSourceGone,  // nothing more comes: the connection broke
  };
  // Prints what is new to `fd`; waits a moment where there is nothing, or nobody reads.
  Step Next(int fd);

  // Up to where `fd` has taken the output.
  LogPlace place() const { return place_; }

 private:
  // How much of the text is taken; nothing: nobody reads any more.
  std::optional<size_t> Write(int fd, std::string_view text, bool of_output);
  Step Print(int fd);

  OutputSource& source_;
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
