#include "launcher/external/places/place_server.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/external/places/place.h"
#include "launcher/process/links/pass_descriptors.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

constexpr off_t kMostEnvironment = off_t{16} << 20;

// The entries of an environment, each terminated by a zero byte; nothing if it cannot be read.
std::optional<std::vector<std::string>> ReadEnvironment(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_size > kMostEnvironment) return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t have = 0; have < bytes.size();) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<size_t>(got);
  }
  std::vector<std::string> entries;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', begin), bytes.size());
    if (end > begin) entries.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

// The CPUs of the process if they differ from the agent's: its launcher has bound it.
std::vector<int> BoundTo(pid_t pid) {
  cpu_set_t own{}, theirs{};
  if (pid <= 0 || ::sched_getaffinity(0, sizeof own, &own) != 0 ||
      ::sched_getaffinity(pid, sizeof theirs, &theirs) != 0 || CPU_EQUAL(&own, &theirs))
    return {};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &theirs)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

struct PlaceServer::Holder {
  explicit Holder(asio::io_context& io) : socket(io) {}
  asio::posix::stream_descriptor socket;
  int pid = 0;
  bool taken = false;
  Place place;
};

PlaceServer::PlaceServer(asio::io_context& io, OnTaken on_taken)
    : io_(io),
      on_taken_(std::move(on_taken)),
      listener_(io, [this](LinkClient client) { Accept(std::move(client)); }) {
  for (const auto& [name, value] : AllEnv()) own_environment_.push_back(name + "=" + value);
}

PlaceServer::~PlaceServer() = default;

Status PlaceServer::Listen(const std::string& agent_job_id) {
  return listener_.Listen(PlaceAddress(agent_job_id));
}

Place* PlaceServer::Find(uint32_t place) {
  const auto found = holders_.find(place);
  return found == holders_.end() ? nullptr : &found->second->place;
}

void PlaceServer::End(uint32_t place, const ProcessEnd& end) {
  const auto found = holders_.find(place);
  if (found == holders_.end()) return;
  // If the process is gone, losing the message does no harm.
  (void)PassDescriptors(found->second->socket.native_handle(), PlaceEndText(end), {});
}

void PlaceServer::Accept(LinkClient client) {
  auto holder = std::make_shared<Holder>(io_);
  holder->pid = client.pid;
  holder->socket.assign(client.socket.Release());
  WaitToRead(holder);
}

// Until the process closes it: the holder of a place keeps the connection open.
void PlaceServer::WaitToRead(const HolderPtr& holder) {
  holder->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                            [this, holder](const asio::error_code& error) {
                              if (!error) Read(holder);
                            });
}

void PlaceServer::Read(const HolderPtr& holder) {
  std::optional<PassedDescriptors> passed = ReceiveDescriptors(holder->socket.native_handle());
  if (!passed) return WaitToRead(holder);
  if (passed->bytes.empty() || holder->taken) return holder->socket.close();
  const std::optional<PlaceNumber> number = ParsePlace(passed->bytes);
  std::optional<std::vector<std::string>> environment;
  if (!passed->descriptors.empty()) environment = ReadEnvironment(passed->descriptors[0].get());
  if (!number || !environment || holders_.contains(number->place)) {
    LogWarning(Format("process {} was sent away: it names no free place", holder->pid));
    return holder->socket.close();
  }
  holder->taken = true;
  holder->place = {*number, VariablesOfLauncher(*environment, {}, own_environment_),
                   BoundTo(holder->pid), UniqueFd()};
  if (passed->descriptors.size() > 1) holder->place.pmi = std::move(passed->descriptors[1]);
  holders_[number->place] = holder;
  WaitToRead(holder);
  on_taken_(*number);
}

}  // namespace hvd
