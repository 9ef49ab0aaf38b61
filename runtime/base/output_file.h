// OutputFile: a file that is renamed to its path when complete. Until then it has another name in
// the same folder; it is removed if abandoned.
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
  // An error about the path if it cannot be written. The file is accessible to its owner only.
  static Result<std::unique_ptr<OutputFile>> Create(const std::string& path);
  ~OutputFile();  // without Finish: removes the file
  OutputFile(const OutputFile&) = delete;

  // Append to this buffer; call Written from time to time.
  std::string* buffer() { return &buffer_; }
  // Writes the buffer to the file if it is long enough.
  void Written() {
    if (buffer_.size() >= kBlock) Write();
  }
  void Append(std::string_view bytes) {
    buffer_ += bytes;
    Written();
  }
  // Not ok: a write failed, and the path is unchanged.
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
  uint64_t bytes_ = 0;  // written to the file
  int error_ = 0;
  bool finished_ = false;
};

// Resolves `path` for writing. If its last component is a symbolic link of this user or root, it is
// followed; a link of another user is refused, since it could direct the output to any file of this
// user.
Result<std::string> PathForOutput(const std::string& path);

// Opens a regular file for writing, creating it if missing; `name` is relative to `folder`, a
// descriptor or AT_FDCWD. Never follows a link and never waits for a reader. On failure invalid,
// with errno set; ELOOP: a link; ENXIO: not a regular file.
UniqueFd OpenRegularFile(int folder, const char* name, int flags, mode_t mode);

// PathForOutput and OpenRegularFile; an error about the path if it cannot be opened. `flags`:
// O_APPEND or O_TRUNC.
Result<UniqueFd> OpenForOutput(const std::string& path, int flags, mode_t mode);

// Writes a whole file: Create, Append, Finish.
Status WriteWholeFile(const std::string& path, std::string_view text);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_OUTPUT_FILE_H_
