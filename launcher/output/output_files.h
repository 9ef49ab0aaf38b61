// OutputFiles: the output of each rank, byte for byte, in <directory>/rank.<number>/stdout and
// stderr. Written on its own thread, so that a slow disk delays no heartbeat. A file whose write
// fails is given up; the job and the screen continue. With a limit, a file that reaches it is
// renamed at a line end to stdout.1, replacing the previous one.
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

// Creates the folders and empty files of all ranks. `limit_bytes` 0: no limit. Refuses an existing
// link, pipe or device: it may belong to another user.
Status PrepareOutputFiles(const std::string& directory, uint32_t size, int64_t limit_bytes);

class OutputFiles {
 public:
  // Requires PrepareOutputFiles. `on_written` gets the receipts of written bytes; it runs on the
  // writing thread.
  OutputFiles(std::string directory, uint32_t size, int64_t limit_bytes,
              std::function<void(std::vector<OutputReceipt>)> on_written,
              std::shared_ptr<PrintedOutput> printed = nullptr);
  ~OutputFiles();  // blocks until everything is written

  // `worker`: the worker that has this rank; the same number in a job of fixed size. With
  // `printed`, its bytes are counted there (PrintedOutput::in_file).
  void Write(uint32_t rank, uint32_t worker, OutputStream stream, std::string bytes,
             OutputReceipt receipt);
  // Blocks until everything queued is written.
  void Flush();
  // Returns once a message about the first file that could not be written.
  std::optional<std::string> PopFailure();

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
    int64_t base = 0;  // bytes in rotated files
  };
  // 10,000 ranks would otherwise need 20,000 descriptors.
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

  // Used by the thread only.
  std::map<size_t, UniqueFd> open_;
  std::vector<Progress> progress_;                // by file
  const std::shared_ptr<PrintedOutput> printed_;  // may be null
  bool reported_ = false;

  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_OUTPUT_FILES_H_
