#include "launcher/output/stdin_reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr uint64_t kReadBytes = 32 * 1024;
constexpr int kBackgroundPollMs = 300;

bool InBackground(int fd) { return ::isatty(fd) == 1 && ::tcgetpgrp(fd) != ::getpgrp(); }

}  // namespace

bool PassesStdin(StdinTo stdin_to) {
  return stdin_to == StdinTo::kRank0 && ::isatty(STDIN_FILENO) != 1;
}

bool IsEmptyInput(int fd) {
  struct stat info {};
  constexpr unsigned kMemory = 1, kNull = 3;
  return ::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && major(info.st_rdev) == kMemory &&
         minor(info.st_rdev) == kNull;
}

struct StdinReader::Shared {
  int fd = 0;
  UniqueFd wake;
  Mutex mutex;
  std::function<void(std::string)> on_bytes HVD_GUARDED_BY(mutex);
  std::condition_variable changed;
  uint64_t allowed HVD_GUARDED_BY(mutex) = 0;
  bool stop HVD_GUARDED_BY(mutex) = false;

  // False when reading is over.
  bool Pass(std::string bytes) {
    MutexLock lock(mutex);
    if (stop) return false;
    bool more = !bytes.empty();
    allowed -= bytes.size();
    on_bytes(std::move(bytes));
    return more;
  }
};

StdinReader::StdinReader(int fd, uint64_t allowed_bytes, std::function<void(std::string)> on_bytes)
    : shared_(std::make_shared<Shared>()) {
  shared_->fd = fd;
  shared_->on_bytes = std::move(on_bytes);
  shared_->allowed = allowed_bytes;
  shared_->wake.Reset(::eventfd(0, EFD_CLOEXEC));
  // Detached: it may be blocked in read() if another process reads the same pipe.
  std::thread([shared = shared_] { Run(shared); }).detach();
}

StdinReader::~StdinReader() {
  {
    MutexLock lock(shared_->mutex);
    shared_->stop = true;
    shared_->on_bytes = nullptr;
  }
  shared_->changed.notify_all();
  uint64_t one = 1;
  if (::write(shared_->wake.get(), &one, sizeof one) < 0)
    return;  // it checks again at the next byte
}

void StdinReader::Allow(uint64_t bytes) {
  {
    MutexLock lock(shared_->mutex);
    shared_->allowed += bytes;
  }
  shared_->changed.notify_all();
}

void StdinReader::Run(const std::shared_ptr<Shared>& shared) {
  sigset_t all;
  ::sigfillset(&all);  // with SIGTTIN blocked, reading in the background is an error, not a stop
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::string buffer;
  while (true) {
    {
      MutexLock lock(shared->mutex);
      shared->changed.wait(
          lock, [&]() HVD_REQUIRES(shared->mutex) { return shared->stop || shared->allowed > 0; });
      if (shared->stop) return;
      buffer.resize(std::min(shared->allowed, kReadBytes));
    }
    bool background = InBackground(shared->fd);
    pollfd wait[2] = {{shared->wake.get(), POLLIN, 0}, {shared->fd, POLLIN, 0}};
    ::poll(wait, background ? 1 : 2, background ? kBackgroundPollMs : -1);
    if (wait[0].revents != 0) return;
    if (background || wait[1].revents == 0 || InBackground(shared->fd)) continue;
    ssize_t got = ::read(shared->fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0 && errno == EIO && InBackground(shared->fd)) continue;
    if (!shared->Pass(buffer.substr(0, got > 0 ? static_cast<size_t>(got) : 0))) return;
  }
}

}  // namespace hvd
