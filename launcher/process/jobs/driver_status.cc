#include "launcher/process/jobs/driver_status.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "launcher/process/jobs/job_id.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

constexpr std::string_view kName = "hvd-driver-";
constexpr size_t kJobIdDigits = 16;
constexpr size_t kMostNameBytes = 64;
// Pause between rounds of answers, so that clients that connect repeatedly do not slow down the
// driver.
constexpr auto kPause = std::chrono::milliseconds(10);

// The process that listens, if it runs as this user.
std::optional<pid_t> OwnListener(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  if (peer.uid != ::geteuid() || peer.pid <= 0) return std::nullopt;
  return peer.pid;
}

std::optional<JobCounts> ReadCounts(int socket, TimePoint deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyNow());
  pollfd entry{socket, POLLIN, 0};
  if (::poll(&entry, 1, std::max<int>(0, static_cast<int>(left.count()))) != 1) return std::nullopt;
  std::array<char, kMostNameBytes> bytes;
  ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return std::nullopt;
  return ParseJobCounts({bytes.data(), static_cast<size_t>(got)});
}

}  // namespace

DriverStatusListener::DriverStatusListener(asio::io_context& io, std::function<JobCounts()> counts)
    : counts_(std::move(counts)),
      listener_(
          io, [this](const LinkClient& client) { Answer(client); }, kPause) {}

Status DriverStatusListener::Open(const std::string& job_id) {
  return listener_.Listen(std::string(kName) + job_id);
}

void DriverStatusListener::Answer(const LinkClient& client) {
  const std::string text = JobCountsText(counts_());
  (void)::send(client.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<DriverReply> AskDrivers(Duration limit) {
  const TimePoint deadline = SteadyNow() + limit;
  struct Asked {
    DriverReply driver;
    UniqueFd socket;
  };
  std::vector<Asked> asked;  // ask all before waiting for the first
  for (const std::string& job : DriversIn(ReadProcFile("net/unix"))) {
    Result<UniqueFd> socket = ConnectLinkIfAny(std::string(kName) + job);
    if (!socket.ok() || !socket->valid()) continue;
    if (std::optional<pid_t> pid = OwnListener(socket->get()))
      asked.push_back({{job, *pid, std::nullopt}, std::move(*socket)});
  }
  std::vector<DriverReply> drivers;
  for (Asked& each : asked) {
    each.driver.counts = ReadCounts(each.socket.get(), deadline);
    drivers.push_back(std::move(each.driver));
  }
  return drivers;
}

std::vector<std::string> DriversIn(std::string_view unix_sockets) {
  std::vector<std::string> jobs;
  while (!unix_sockets.empty()) {
    size_t end = std::min(unix_sockets.find('\n'), unix_sockets.size());
    std::string_view line = unix_sockets.substr(0, end);
    unix_sockets.remove_prefix(std::min(end + 1, unix_sockets.size()));
    size_t at = line.rfind(" @");
    if (at == std::string_view::npos || !line.substr(at + 2).starts_with(kName)) continue;
    std::string job(line.substr(at + 2 + kName.size()).substr(0, kJobIdDigits));
    // The kernel shows a trailing zero byte of a name as '@'; these names have none.
    if (line.size() != at + 2 + kName.size() + kJobIdDigits || !ParseJobId(job)) continue;
    if (std::find(jobs.begin(), jobs.end(), job) == jobs.end()) jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string JobCountsText(const JobCounts& counts) {
  return Format("{} {}", counts.size, counts.alive);
}

std::optional<JobCounts> ParseJobCounts(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  const auto size = ParseWhole<uint32_t>(text.substr(0, blank));
  const auto alive = ParseWhole<uint32_t>(text.substr(blank + 1));
  if (!size || !alive || *alive > *size) return std::nullopt;
  return JobCounts{.size = *size, .alive = *alive};
}

}  // namespace hvd
