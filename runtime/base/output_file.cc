#include "runtime/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Status CannotBeWritten(const std::string& path, int error) {
  return InvalidArgument(path + " cannot be written: " + std::strerror(error));
}

// The target of an open link.
std::string TargetOf(int link) {
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(link, "", target, sizeof target);
  return {target, length > 0 ? static_cast<size_t>(length) : 0};
}

}  // namespace

Result<std::string> PathForOutput(const std::string& path) {
  constexpr int kMostLinks = 8;
  std::string now = path;
  for (int links = 0; links < kMostLinks; ++links) {
    // Opens the link itself, so that it cannot be exchanged between the check of its owner and the
    // read of its target.
    const UniqueFd held(::open(now.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!held.valid() || ::fstat(held.get(), &info) != 0 || !S_ISLNK(info.st_mode)) return now;
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      return InvalidArgument(
          Format("{} cannot be written: {} is a link of another user (uid {}), "
                 "which is not followed; remove it or name another file",
                 path, now, info.st_uid));
    }
    const std::string target = TargetOf(held.get());
    const size_t slash = now.rfind('/');
    now = target.starts_with('/') || slash == std::string::npos ? target
                                                                : now.substr(0, slash + 1) + target;
  }
  return CannotBeWritten(path, ELOOP);
}

UniqueFd OpenRegularFile(int folder, const char* name, int flags, mode_t mode) {
  constexpr int kAlways = O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  // Truncated only once it is known to be a regular file.
  UniqueFd file(::openat(folder, name, kAlways | O_WRONLY | (flags & ~O_TRUNC), mode));
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return UniqueFd();
  if (!S_ISREG(info.st_mode)) {
    errno = ENXIO;
    return UniqueFd();
  }
  if ((flags & O_TRUNC) != 0 && ::ftruncate(file.get(), 0) != 0) return UniqueFd();
  return file;
}

Result<UniqueFd> OpenForOutput(const std::string& path, int flags, mode_t mode) {
  Result<std::string> real = PathForOutput(path);
  if (!real.ok()) return real.status();
  UniqueFd file = OpenRegularFile(AT_FDCWD, real->c_str(), flags, mode);
  if (file.valid()) return file;
  if (errno == ENXIO)
    return InvalidArgument(path + " cannot be written: it exists and is no regular file");
  return CannotBeWritten(path, errno);
}

Result<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  struct stat stat = {};
  if (::stat(path.c_str(), &stat) == 0 && !S_ISREG(stat.st_mode))
    return InvalidArgument(path + " cannot be written: it exists and is no regular file");
  std::string part = path + ".part-XXXXXX";
  UniqueFd fd(::mkostemp(part.data(), O_CLOEXEC));
  if (fd.get() < 0) return CannotBeWritten(path, path.empty() ? ENOENT : errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(part), std::move(fd)));
}

OutputFile::~OutputFile() {
  if (!finished_) ::unlink(part_.c_str());
}

void OutputFile::Write() {
  std::string_view rest = buffer_;
  while (!rest.empty() && error_ == 0) {
    const ssize_t count = ::write(fd_.get(), rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  bytes_ += buffer_.size();
  buffer_.clear();
}

Status OutputFile::Finish() {
  Write();
  if (error_ == 0 && ::rename(part_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) return CannotBeWritten(path_, error_);
  finished_ = true;
  return Status::Ok();
}

Status WriteWholeFile(const std::string& path, std::string_view text) {
  Result<std::unique_ptr<OutputFile>> file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  (*file)->Append(text);
  return (*file)->Finish();
}

}  // namespace hvd
