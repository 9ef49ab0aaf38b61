#include "runtime/trace/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFirstSize = 64 * kPage;
constexpr size_t kCopyBytes = 1 << 20;
constexpr std::string_view kEnd = "\n]";

Status CannotWrite(const std::string& path, int error) {
  return SystemError("the timeline " + path + " cannot be written", error);
}

Status WriteAt(int fd, std::string_view bytes, uint64_t at, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return CannotWrite(path, written < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(written));
    at += static_cast<uint64_t>(written);
  }
  return Status::Ok();
}

// The first `used` bytes of `from`, at least the opening bracket, then spaces, then the end of
// the array.
Status Fill(int from, int to, uint64_t used, uint64_t size, const std::string& path) {
  std::string piece;
  HVD_RETURN_IF_ERROR(WriteAt(to, "[", 0, path));
  for (uint64_t at = 0; at < used;) {
    piece.resize(std::min<uint64_t>(kCopyBytes, used - at));
    const ssize_t read = ::pread(from, piece.data(), piece.size(), static_cast<off_t>(at));
    if (read <= 0) return CannotWrite(path, read < 0 ? errno : EIO);
    piece.resize(static_cast<size_t>(read));
    HVD_RETURN_IF_ERROR(WriteAt(to, piece, at, path));
    at += static_cast<uint64_t>(read);
  }
  const uint64_t end = size - kEnd.size();
  for (uint64_t at = std::max<uint64_t>(used, 1); at < end;) {
    piece.assign(std::min<uint64_t>(kCopyBytes, end - at), ' ');
    HVD_RETURN_IF_ERROR(WriteAt(to, piece, at, path));
    at += piece.size();
  }
  return WriteAt(to, kEnd, end, path);
}

}  // namespace

Status TraceFile::Check(const std::string& path) {
  const Result<std::string> real = PathForOutput(path);
  if (!real.ok()) return InvalidArgument("the timeline " + real.status().message());
  struct stat before {};
  const bool there = ::lstat(real->c_str(), &before) == 0;
  if (there && !S_ISREG(before.st_mode)) {
    return InvalidArgument("the timeline " + path + " cannot be written: it is " +
                           (S_ISDIR(before.st_mode) ? "a directory" : "no regular file") +
                           "; name a file");
  }
  const UniqueFd fd = OpenRegularFile(AT_FDCWD, real->c_str(), 0, 0666);
  if (!fd.valid()) return {Code::kInvalidArgument, CannotWrite(path, errno).message()};
  if (!there) ::unlink(real->c_str());
  return Status::Ok();
}

Result<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path, uint64_t most_bytes) {
  HVD_RETURN_IF_ERROR(Check(path));
  std::unique_ptr<TraceFile> file(new TraceFile(path, UniqueFd(), most_bytes));
  HVD_RETURN_IF_ERROR(file->Replace(kFirstSize));
  return file;
}

TraceFile::~TraceFile() {
  if (fd_.valid())
    (void)Finish();  // otherwise Create failed, and an end without an array is not JSON
}

// Replaces the current file by one of this size with the same events.
Status TraceFile::Replace(uint64_t size) {
  // If the user's path is a link, its target is replaced.
  const Result<std::string> target = PathForOutput(path_);
  if (!target.ok()) return InvalidArgument("the timeline " + target.status().message());
  const std::string copy = *target + ".part";
  ::unlink(copy.c_str());  // of a job that was killed, or a link planted under this name
  UniqueFd fd(::open(copy.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return CannotWrite(path_, errno);
  Status filled = Fill(fd_.get(), fd.get(), used_, size, path_);
  if (filled.ok() && ::rename(copy.c_str(), target->c_str()) != 0)
    filled = CannotWrite(path_, errno);
  if (!filled.ok()) {
    ::unlink(copy.c_str());
    return filled;
  }
  fd_ = std::move(fd);
  size_ = size;
  used_ = std::max<uint64_t>(used_, 1);
  return Status::Ok();
}

Status TraceFile::Grow(uint64_t at_least) {
  uint64_t size = std::max(size_ * 2, at_least);
  if (most_bytes_ != 0) size = std::min(size, std::max(most_bytes_, size_));
  if (size < at_least) {
    return Status(Code::kUnsupported,
                  Format("the timeline {} has reached its limit of {} bytes", path_, most_bytes_));
  }
  return Replace(size);
}

Status TraceFile::Add(std::string_view line) {
  if (finished_ || line.empty() || line.size() > kMostLine) return InvalidArgument("no event");
  std::string text = used_ > 1 || !pending_.empty() ? ",\n" : "\n";
  text += line;
  uint64_t at = used_ + pending_.size();
  if (at / kPage != (at + text.size() - 1) / kPage) {
    HVD_RETURN_IF_ERROR(Flush());
    at = used_ = (at / kPage + 1) * kPage;
  }
  // Leaves a page for the last events.
  if (at + text.size() + kEnd.size() + kPage > size_) {
    HVD_RETURN_IF_ERROR(Flush());
    if (Status grown = Grow(at + text.size() + 2 * kPage); !grown.ok()) return grown;
  }
  pending_ += text;
  return Status::Ok();
}

Status TraceFile::Flush() {
  const std::string text = std::exchange(pending_, {});
  if (text.empty()) return Status::Ok();
  HVD_RETURN_IF_ERROR(WriteAt(fd_.get(), text, used_, path_));
  used_ += text.size();
  return Status::Ok();
}

Status TraceFile::Finish(std::string_view last_line) {
  if (std::exchange(finished_, true)) return Status::Ok();
  (void)Flush();
  std::string text = used_ > 1 ? ",\n" : "\n";
  text += last_line;
  const uint64_t at =
      used_ / kPage == (used_ + text.size() - 1) / kPage ? used_ : (used_ / kPage + 1) * kPage;
  const bool fits = at + text.size() + kEnd.size() <= size_;
  if (!last_line.empty() && text.size() < kPage && fits) {
    used_ = at;
    pending_ = std::move(text);
    (void)Flush();
  }
  return Replace(used_ + kEnd.size());
}

}  // namespace hvd
