// OutputFiles: the output of each rank, byte for byte, in <directory>/rank.<number>/stdout and
// stderr. Written by a thread of its own, so that a slow disk stops no heartbeat. A file that
// cannot be written any more is given up, and the job and the screen go on. With a limit, a file
// that reaches it becomes stdout.1 (the one before goes away) at a line end.
#ifndef HVD_LAUNCHER_OUTPUT_OUTPUT_FILES_H_
#define HVD_LAUNCHER_OUTPUT_OUTPUT_FILES_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/output/output.h"
#include "launcher/wire/messages.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// "<directory>/rank.07": numbers have as many digits as the largest of `size` ranks. Pure.
std::string OutputFolder(const std::string& directory, uint32_t rank, uint32_t size);

// Makes the folders and empty files of all ranks. `limit_bytes` 0: none. Refuses what is there
// already and is a link, a pipe or a device: it may be somebody else's.
Status PrepareOutputFiles(const std::string& directory, uint32_t size, int64_t limit_bytes);

class OutputFiles {
 public:
  // The files were prepared. `on_written` hears what left the queue; it runs on the writing thread.
  OutputFiles(std::string directory, uint32_t size, int64_t limit_bytes,
              std::function<void(std::vector<OutputReceipt>)> on_written,
              std::shared_ptr<PrintedOutput> printed = nullptr);
  ~OutputFiles();  // waits until everything is written

  // `worker`: that is this rank; in a job of fixed size they have one number. With `printed`, its
  // bytes are counted there (PrintedOutput::in_file).
  void Write(uint32_t rank, uint32_t worker, OutputStream stream, std::string bytes,
             OutputReceipt receipt);
  // Waits until everything queued is written.
  void Flush();
  // A sentence about the first file that could not be written; once.
  std::optional<std::string> TakeFailure();

 private:
  struct Piece {
    size_t file = 0;  // 2 * rank + stream
    uint32_t worker = 0;
    std::string bytes;
    OutputReceipt receipt;
  };
  struct Progress {
    int64_t bytes = 0;
    bool line_ended = true;
    bool given_up = false;
    int64_t base = 0;  // bytes in former files
  };
  // Bounded, so that 10,000 ranks need no 20,000 descriptors.
  static constexpr size_t kMaxOpen = 128;

  void Run();
  void GoOn();
  void WritePiece(const Piece& piece);
  void CountFor(const Piece& piece);
  void NoteWritten(const Piece& piece);
  std::string FolderOf(size_t file) const;
  std::string PathOf(size_t file) const;
  bool Rotate(const Piece& piece);
  void GiveUp(const Piece& piece, const Status& why);

  std::string directory_;
  uint32_t size_;
  int64_t limit_bytes_;
  std::function<void(std::vector<OutputReceipt>)> on_written_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> queued_ HVD_GUARDED_BY(mutex_);
  bool writing_ HVD_GUARDED_BY(mutex_) = false;
  bool stop_ HVD_GUARDED_BY(mutex_) = false;
  std::optional<std::string> failure_ HVD_GUARDED_BY(mutex_);

  // Of the thread alone.
  std::map<size_t, UniqueFd> open_;
  std::vector<Progress> progress_;                // by file
  const std::shared_ptr<PrintedOutput> printed_;  // perhaps null
  bool reported_ = false;

  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_OUTPUT_FILES_H_
