// HostfileWatch: the hosts of a file that is read again when it changes.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_HOSTFILE_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_HOSTFILE_WATCH_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/elastic_hosts/off_loop.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// Equal stamps mean an unchanged file. Follows symbolic links, so that a swapped link (`..data` of
// a ConfigMap) is detected.
struct FileStamp {
  int error = 0;  // errno of stat
  uint64_t device = 0, inode = 0;
  int64_t size = 0, modified_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// May block on a network file system.
FileStamp StampOf(const std::string& path);

struct HostfileWatchTimes {
  Duration pause = std::chrono::seconds(1);           // polling interval
  Duration settled = std::chrono::milliseconds(100);  // time without a change before it is read
};

class HostfileWatch final : public HostWatch {
 public:
  // Parses the file. Any thread.
  using Reader = std::function<Result<std::vector<HostSpec>>(const std::string& path)>;

  HostfileWatch(asio::io_context& io, std::string path, Reader read, const WatchParts& parts,
                HostfileWatchTimes times = {});
  ~HostfileWatch() override { Stop(); }

  void Start(std::function<void(const HostAnswer&)> on_answer) override;
  void Stop() override;

 private:
  void Look();
  void LookLater(Duration pause);
  void OnStamp(const FileStamp& stamp);
  void Read();
  void OnRead(const Result<std::vector<HostSpec>>& specs);
  void Tell(const std::optional<HostAnswer>& answer);

  const std::string path_;
  const Reader read_;
  const HostfileWatchTimes times_;
  std::function<void(const HostAnswer&)> on_answer_;
  // Lets pending handlers detect that the watch has stopped.
  std::shared_ptr<const bool> watching_;
  asio::steady_timer pause_;
  OffLoop off_loop_;
  NamedHosts named_;
  AnswerHistory history_;
  std::optional<FileStamp> seen_;   // at the last poll
  std::optional<FileStamp> known_;  // when the file was last read
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_HOSTFILE_WATCH_H_
