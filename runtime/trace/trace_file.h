// TraceFile: a JSON array of events in a file that is valid JSON at any moment, even while being
// written or after the writer was killed.
//
// The array's end is at the end of the file, after a padding of spaces that events overwrite. Each
// write is within one page of 4 KiB, and therefore atomic even if the process is killed. When the
// padding is used up, a copy with twice the padding replaces the file by rename. At the end the
// padding is removed in the same way.
#ifndef HVD_RUNTIME_TRACE_TRACE_FILE_H_
#define HVD_RUNTIME_TRACE_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class TraceFile {
 public:
  // Creates or truncates the file. The error is a sentence about the path. `most_bytes`: size
  // limit; 0: none.
  static Result<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                   uint64_t most_bytes = 0);
  // Checks whether Create would succeed, without leaving a new file.
  static Status Check(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;

  // One event: a JSON value in one line of at most kMostLine bytes. It is in the file after the
  // next Flush at the latest. Not ok: it is not in the file, which is as it was (no space left, or
  // the limit).
  Status Add(std::string_view line);
  Status Flush();
  // Cuts the room off, after a last event if there is any: for that one, there is room also after
  // Add failed. Nothing may be added afterwards.
  Status Finish(std::string_view last_line = {});

  const std::string& path() const { return path_; }
  // Of events, so far.
  uint64_t bytes() const { return used_ + pending_.size(); }
  static constexpr size_t kMostLine = 4000;

 private:
  TraceFile(std::string path, UniqueFd fd, uint64_t most_bytes)
      : path_(std::move(path)), fd_(std::move(fd)), most_bytes_(most_bytes) {}
  Status Replace(uint64_t size);
  Status Grow(uint64_t at_least);

  const std::string path_;
  UniqueFd fd_;
  const uint64_t most_bytes_;
  uint64_t used_ = 0;    // up to the end of the last event in the file
  uint64_t size_ = 0;    // of the file; its last two bytes are "\n]"
  std::string pending_;  // events behind `used_` that are not written yet, all in one page
  bool finished_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_TRACE_FILE_H_
