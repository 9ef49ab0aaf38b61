// OutputWriter: puts text on stdout or stderr of hvdrun from a thread of its own, so that a slow
// reader (a pager, a full pipe) never stops the driver. Handles short writes and descriptors that
// others made non-blocking. Text that cannot be written is dropped and counted as written;
// error() says why.
#ifndef HVD_LAUNCHER_OUTPUT_OUTPUT_H_
#define HVD_LAUNCHER_OUTPUT_OUTPUT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/printed_output.h"

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
  // With `printed`, all of it goes there.
  OutputWriter(int fd, std::function<void(std::vector<OutputReceipt>)> on_written,
               std::shared_ptr<PrintedOutput> printed = nullptr);
  OutputWriter(OutputWriter&&) = delete;
  ~OutputWriter();  // waits until everything is written, unless it was given up

  // Queues text. Thread-safe.
  void Write(std::string text, OutputReceipt receipt = {}) { Take(text, receipt); }
  // The same; leaves `text` empty, with room for the next.
  void Take(std::string& text, OutputReceipt receipt);
  // The same with the spans of the text, which are taken, too.
  void Take(std::string& text, std::vector<PrintedSpan>& spans, OutputReceipt receipt);
  // Waits until everything queued is written.
  void Flush();
  // Waits for that, but no longer than this. True: everything is written.
  bool FlushFor(std::chrono::milliseconds limit);
  // Nobody waits for this writer any more, and `on_written` is not called again. How many bytes
  // were not written, to some thousands: a blocked thread cannot be asked. Last call.
  size_t GiveUp();
  // Why writing failed (errno); 0: it did not. Thread-safe.
  int error() const;

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the thread
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_OUTPUT_H_
