// OutputWriter: puts text on stdout or stderr of hvdrun from a thread of its own, so that a slow reader (a pager, a full
// pipe) never stops the driver. Handles short writes and descriptors that others made non-blocking; ends quietly when
// nobody reads any more.
#ifndef HVD_LAUNCHER_OUTPUT_H_
#define HVD_LAUNCHER_OUTPUT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hvd {

// Writes all of it, waiting as long as it takes. False when nobody can read it any more.
bool WriteAll(int fd, std::string_view bytes);

// So many log bytes of this host have become text.
struct OutputReceipt {
  uint32_t host = 0;
  size_t log_bytes = 0;
};

class OutputWriter {
 public:
  // `on_written` hears what left the queue; it runs on the writing thread. `fd` is not owned.
  OutputWriter(int fd, std::function<void(std::vector<OutputReceipt>)> on_written);
  ~OutputWriter();  // waits until everything is written

  // Queues text. Thread-safe.
  void Write(std::string text, OutputReceipt receipt = {}) { Take(text, receipt); }
  // The same; leaves `text` empty, with room for the next.
  void Take(std::string& text, OutputReceipt receipt);
  // Waits until everything queued is written.
  void Flush();
  // Why writing was given up (errno); 0: it was not. After Flush.
  int error() const { return error_; }
  // Waits for that, but no longer than this.
  void FlushFor(std::chrono::milliseconds limit);

 private:
  void Run();

  int fd_;
  std::function<void(std::vector<OutputReceipt>)> on_written_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string queued_, writing_text_;  // the second of the thread alone while writing_
  std::vector<OutputReceipt> receipts_;
  bool writing_ = false, stop_ = false;
  int error_ = 0;
  std::thread thread_;  // started by the first Write: a job without output needs none
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_H_
