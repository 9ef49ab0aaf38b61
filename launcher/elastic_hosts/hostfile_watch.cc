#include "launcher/elastic_hosts/hostfile_watch.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace hvd {

HostfileWatch::HostfileWatch(asio::io_context& io, std::string path, Reader read,
                             const WatchParts& parts, HostfileWatchTimes times)
    : path_(std::move(path)),
      read_(std::move(read)),
      times_(times),
      pause_(io),
      off_loop_(io),
      named_(io, parts) {}

void HostfileWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  on_answer_ = std::move(on_answer);
  watching_ = std::make_shared<const bool>(true);
  Read();
}

void HostfileWatch::Stop() {
  watching_.reset();
  pause_.cancel();
  off_loop_.Forget();
  named_.Forget();
}

void HostfileWatch::LookLater(Duration pause) {
  pause_.expires_after(pause);
  pause_.async_wait([this, watching = std::weak_ptr(watching_)](const asio::error_code& error) {
    if (!error && !watching.expired()) Look();
  });
}

void HostfileWatch::Look() {
  auto stamp = std::make_shared<FileStamp>();
  off_loop_.Ask([path = path_, stamp] { *stamp = StampOf(path); },
                [this, stamp] { OnStamp(*stamp); });
}

// A changed file is read once two checks have found the same stamp: it may still be being written.
void HostfileWatch::OnStamp(const FileStamp& stamp) {
  const bool settled = seen_ == stamp;
  seen_ = stamp;
  if (known_ == stamp) return LookLater(times_.pause);
  if (!settled) return LookLater(times_.settled);
  Read();
}

void HostfileWatch::Read() {
  struct Found {
    FileStamp stamp;
    Result<std::vector<HostSpec>> specs = std::vector<HostSpec>();
  };
  auto found = std::make_shared<Found>();
  const auto question = [path = path_, read = read_, found] {
    found->stamp = StampOf(path);
    found->specs = read(path);
  };
  off_loop_.Ask(question, [this, found] {
    known_ = seen_ = found->stamp;
    OnRead(found->specs);
  });
}

void HostfileWatch::OnRead(const Result<std::vector<HostSpec>>& specs) {
  if (!specs.ok()) return Tell(history_.Bad({"bad file", specs.status().message()}));
  named_.Resolve(*specs,
                 [this](std::vector<HostSlots> hosts) { Tell(history_.Good(std::move(hosts))); });
}

void HostfileWatch::Tell(const std::optional<HostAnswer>& answer) {
  LookLater(times_.pause);
  if (answer) on_answer_(*answer);  // which may stop this watch
}

FileStamp StampOf(const std::string& path) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {.error = errno};
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = info.st_size,
          .modified_ns = info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

}  // namespace hvd
