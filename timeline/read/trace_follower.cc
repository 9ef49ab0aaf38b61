#include "timeline/read/trace_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace hvd {
namespace {

constexpr size_t kBlock = size_t{1} << 20U;

}  // namespace

// The writer sometimes replaces the file by a longer copy: the part already read is the same in
// both.
Status TraceFollower::Open() {
  struct stat here = {}, open = {};
  const bool same = fd_.get() >= 0 && ::stat(path_.c_str(), &here) == 0 &&
                    ::fstat(fd_.get(), &open) == 0 && here.st_ino == open.st_ino &&
                    here.st_dev == open.st_dev;
  if (same) return Status::Ok();
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 || ::fstat(fd.get(), &open) != 0)
    return InvalidArgument(path_ + " cannot be read: " + std::strerror(errno));
  if (!S_ISREG(open.st_mode)) return InvalidArgument(path_ + " is no regular file");
  fd_ = std::move(fd);
  return Status::Ok();
}

// Returns how many bytes were used.
size_t TraceFollower::ReadEvents(const std::function<void(const TraceEvent&)>& on_event) {
  size_t used = 0;
  JsonWalk walk({buffer_.data(), used_});
  for (;;) {
    while (walk.Space() == Walked::kWhole && (*walk.at() == ',' || *walk.at() == '['))
      (void)walk.Accept(*walk.at());
    TraceEvent event;
    if (walk.AtEnd() || ReadTraceEvent(&walk, &event) != Walked::kWhole) return used;
    used = static_cast<size_t>(walk.at() - buffer_.data());
    closed_ = event.name == "\"events_lost\"";
    on_event(event);
  }
}

Status TraceFollower::Poll(const std::function<void(const TraceEvent&)>& on_event) {
  HVD_RETURN_IF_ERROR(Open());
  buffer_.resize(kBlock);
  for (;;) {
    const ssize_t count =
        ::pread(fd_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return InvalidArgument(path_ + " cannot be read: " + std::strerror(errno));
    used_ = static_cast<size_t>(count);
    if (offset_ == 0 && used_ > 0 && buffer_[0] != '[')
      return InvalidArgument(path_ + " is no timeline: it does not begin with [");
    const size_t used = ReadEvents(on_event);
    if (used == 0) return Status::Ok();
    offset_ += used;
  }
}

}  // namespace hvd
