// OutputFile: a file that takes its place when it is complete. Until then it lies beside it under
// another name, and is removed when it is given up.
//
// One thread at a time.
#ifndef HVD_RUNTIME_BASE_OUTPUT_FILE_H_
#define HVD_RUNTIME_BASE_OUTPUT_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class OutputFile {
 public:
  // A sentence about the path where it cannot be written. The file is for its owner only.
  static Result<std::unique_ptr<OutputFile>> Create(const std::string& path);
  ~OutputFile();  // without Finish: nothing is left
  OutputFile(const OutputFile&) = delete;

  // Room for more of the file; call Written after each piece or so.
  std::string* buffer() { return &buffer_; }
  // Hands the buffer to the file when it is long enough.
  void Written() {
    if (buffer_.size() >= kBlock) Write();
  }
  void Append(std::string_view bytes) {
    buffer_ += bytes;
    Written();
  }
  // Not ok: something could not be written, and the path is as it was before.
  Status Finish();
  bool failed() const { return error_ != 0; }
  uint64_t bytes() const { return bytes_ + buffer_.size(); }

 private:
  static constexpr size_t kBlock = size_t{1} << 20U;

  OutputFile(std::string path, std::string part, UniqueFd fd)
      : path_(std::move(path)), part_(std::move(part)), fd_(std::move(fd)) {
    buffer_.reserve(kBlock + kBlock / 4);
  }
  void Write();

  const std::string path_, part_;
  UniqueFd fd_;
  std::string buffer_;
  uint64_t bytes_ = 0;  // in the file
  int error_ = 0;
  bool finished_ = false;
};

// The path of the file that `path` names for writing. A link in its last place is followed where it
// belongs to this user or to root; one that a stranger has put there is refused, since it would
// direct the output to any file of the user's.
Result<std::string> PathForOutput(const std::string& path);

// Opens a regular file for writing, and makes it where there is none; `name` is relative to
// `folder`, an open one or AT_FDCWD. Never follows a link and never waits for a reader. Invalid,
// with errno: it cannot be opened; ELOOP: it is a link; ENXIO: it is no regular file.
UniqueFd OpenRegularFile(int folder, const char* name, int flags, mode_t mode);

// Both: a sentence about the path where it cannot be opened. `flags`: O_APPEND or O_TRUNC.
Result<UniqueFd> OpenForOutput(const std::string& path, int flags, mode_t mode);

// A whole file at once: Create, Append, Finish.
Status WriteWholeFile(const std::string& path, std::string_view text);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_OUTPUT_FILE_H_
