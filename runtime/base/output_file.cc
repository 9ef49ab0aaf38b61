#include "runtime/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

Status CannotBeWritten(const std::string& path, int error) {
  return InvalidArgument(path + " cannot be written: " + std::strerror(error));
}

}  // namespace

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
