#include "launcher/channels/ssh/ssh_hub.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/process/proc_file.h"
#include "runtime/base/log.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(100);
constexpr Duration kLongestDelay = std::chrono::seconds(2);
constexpr int kMostDoublings = 10;

}  // namespace

HandshakeGate::Server& HandshakeGate::ServerAt(const std::string& address) {
  Server& server = servers_[address];
  if (server.most == 0) server.most = width_;
  return server;
}

bool HandshakeGate::Enter(const std::string& address, Ticket ticket) {
  Server& server = ServerAt(address);
  if (server.logging_in.size() < server.most && server.waiting.empty()) {
    server.logging_in.insert(ticket);
    return true;
  }
  server.waiting.push_back(ticket);
  return false;
}

std::vector<HandshakeGate::Ticket> HandshakeGate::Leave(const std::string& address, Ticket ticket) {
  Server& server = ServerAt(address);
  server.logging_in.erase(ticket);
  std::erase(server.waiting, ticket);
  std::vector<Ticket> next;
  while (server.logging_in.size() < server.most && !server.waiting.empty()) {
    next.push_back(server.waiting.front());
    server.logging_in.insert(server.waiting.front());
    server.waiting.pop_front();
  }
  return next;
}

void HandshakeGate::NoteRefusal(const std::string& address) {
  Server& server = ServerAt(address);
  server.most = std::max<size_t>(1, server.most / 2);
}

std::optional<Duration> RefusalPatience::OnRefusal(TimePoint now, double chance) {
  if (!first_) first_ = now;
  Duration delay =
      std::min(kFirstDelay * (1 << std::min(refusals_, kMostDoublings)), kLongestDelay);
  ++refusals_;
  delay = std::chrono::duration_cast<Duration>(delay * (0.5 + chance));
  if (now - *first_ + delay > limit_) return std::nullopt;
  return delay;
}

namespace {

constexpr size_t kSaltBytes = 20;

std::string RandomSalt() {
  std::string salt(kSaltBytes, '\0');
  [[maybe_unused]] ssize_t got = ::getrandom(salt.data(), salt.size(), 0);
  return salt;
}

std::string LineFor(const SshConfig& config, std::string_view key) {
  KnownHostsName name = NameInKnownHosts(config);
  return config.hash_known_hosts ? HashedKnownHostsLine(name.host, name.port, key, RandomSalt())
                                 : KnownHostsLine(name.host, name.port, key);
}

// Whether the file ends in an unterminated line, to which ours would be appended.
bool EndsInsideALine(int fd) {
  struct stat info {};
  char last = '\n';
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
  return ::pread(fd, &last, 1, info.st_size - 1) == 1 && last != '\n';
}

// /dev/null keeps nothing: a host of this name may have another key next time, as a new pod has.
bool Keeps(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

std::vector<std::string> KnownHostsFiles::FilesOf(const SshConfig& config) {
  std::vector<std::string> files = config.user_known_hosts_files;
  files.insert(files.end(), config.global_known_hosts_files.begin(),
               config.global_known_hosts_files.end());
  return files;
}

const KnownHosts& KnownHostsFiles::Of(const SshConfig& config) {
  auto [entry, is_new] = read_.try_emplace(FilesOf(config));
  if (!is_new) return entry->second;
  for (const std::string& file : entry->first) {
    entry->second.Add(ReadSmallFile(file), file);
  }
  return entry->second;
}

Status KnownHostsFiles::Accept(const SshConfig& config, std::string_view key) {
  if (config.user_known_hosts_files.empty())
    return InvalidArgument("UserKnownHostsFile names no file to write the new host key to");
  const std::string& file = config.user_known_hosts_files.front();
  std::string line = LineFor(config, key);
  if (line.empty()) return InvalidArgument("no line of known_hosts can hold this host's name");
  if (size_t slash = file.rfind('/'); slash != std::string::npos && slash > 0)
    ::mkdir(file.substr(0, slash).c_str(), 0700);
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return SystemError("the new host key cannot be written to " + file, errno);
  std::string text = (EndsInsideALine(fd.get()) ? "\n" : "") + line;
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return SystemError("the new host key cannot be written to " + file, errno);
  if (Keeps(fd.get())) read_[FilesOf(config)].Add(line, file);
  return Status::Ok();
}

SshHub::SshHub(asio::io_context& io, std::shared_ptr<LocalFamily> family)
    : io_(io), family_(std::move(family)), names_(io), child_signal_(io) {}

HandshakeGate::Ticket SshHub::EnterGate(const std::string& address, std::function<void()> on_turn) {
  HandshakeGate::Ticket ticket = next_ticket_++;
  if (gate_.Enter(address, ticket)) {
    on_turn();
  } else {
    in_line_[ticket] = std::move(on_turn);
  }
  return ticket;
}

void SshHub::LeaveGate(const std::string& address, HandshakeGate::Ticket ticket) {
  in_line_.erase(ticket);
  for (HandshakeGate::Ticket next : gate_.Leave(address, ticket)) {
    auto waiting = in_line_.extract(next);
    if (!waiting.empty()) waiting.mapped()();
  }
}

void SshHub::WarnOnce(const std::string& sentence) {
  if (!sentence.empty() && warned_.insert(sentence).second) LogWarning(sentence);
}

void SshHub::WatchChild(pid_t pid, std::function<void(int)> on_exit) {
  family_->Add(pid);
  children_[pid] = std::move(on_exit);
  WaitForChildren();
  asio::post(io_, [this] { ReportExits(); });  // it may have ended before we began to wait
}

void SshHub::KillChild(pid_t pid) {
  family_->Reap();
  // Not reaped yet, so the pid is still its own.
  if (children_.contains(pid) && !family_->StatusOf(pid)) ::kill(-pid, SIGKILL);
}

void SshHub::WaitForChildren() {
  if (std::exchange(waiting_, true)) return;
  child_signal_.add(SIGCHLD);
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    waiting_ = false;
    if (!children_.empty()) WaitForChildren();
    ReportExits();
  });
}

void SshHub::ReportExits() {
  family_->Reap();
  std::vector<std::pair<std::function<void(int)>, int>> ended;
  for (auto child = children_.begin(); child != children_.end();) {
    std::optional<int> status = family_->StatusOf(child->first);
    if (status) ended.emplace_back(std::move(child->second), *status);
    child = status ? children_.erase(child) : std::next(child);
  }
  if (children_.empty() && std::exchange(waiting_, false)) child_signal_.clear();
  for (auto& [on_exit, status] : ended) on_exit(status);
}

}  // namespace hvd
