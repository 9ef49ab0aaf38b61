// OutputWriter: writes text to stdout or stderr of hvdrun on its own thread, so that a slow reader
// (a pager, a full pipe) never blocks the driver. Handles short writes and descriptors that other
// processes made non-blocking. Text that cannot be written is dropped and counted as written;
// error() tells why.
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

// Writes all of it; blocks without limit. False if the reader has gone.
bool WriteAll(int fd, std::string_view bytes);

// `log_bytes` bytes of this host's output are contained in the text.
struct OutputReceipt {
  uint32_t host = 0;
  size_t log_bytes = 0;
};

class OutputWriter {
 public:
  // `on_written` gets the receipts of written text; it runs on the writing thread. `fd` is not
  // owned. With `printed`, text is written through it.
  OutputWriter(int fd, std::function<void(std::vector<OutputReceipt>)> on_written,
               std::shared_ptr<PrintedOutput> printed = nullptr);
  OutputWriter(OutputWriter&&) = delete;
  ~OutputWriter();  // blocks until everything is written, unless GiveUp was called

  // Queues text. Thread-safe.
  void Write(std::string text, OutputReceipt receipt = {}) { WriteAndClear(text, receipt); }
  // The same; clears `text` and keeps its capacity.
  void WriteAndClear(std::string& text, OutputReceipt receipt);
  // The same with the spans of the text, which are cleared, too.
  void WriteAndClear(std::string& text, std::vector<PrintedSpan>& spans, OutputReceipt receipt);
  // Blocks until everything queued is written.
  void Flush();
  // The same, at most for `limit`. True: everything is written.
  bool FlushFor(std::chrono::milliseconds limit);
  // Abandons the writing thread; `on_written` is not called again. Returns the number of bytes not
  // written, to within a few thousand, because the thread may be blocked in a write. Last call.
  size_t GiveUp();
  // errno of the failed write; 0: none failed. Thread-safe.
  int error() const;

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // shared with the thread
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_OUTPUT_H_
