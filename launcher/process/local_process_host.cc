#include "launcher/process/local_process_host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "launcher/process/process_tree.h"
#include "launcher/process/spawn.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

// This much and a held line fit into a frame.
constexpr size_t kOutputBytes = 48 * 1024 - 64;
// For the first workers only: the kernel limits a user's total pipe buffers.
constexpr int kLargePipe = 256 * 1024;
constexpr uint32_t kLargePipes = 32;

ProcessEnd FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {true, WTERMSIG(status)};
  return {false, WEXITSTATUS(status)};
}

struct PipePair {
  UniqueFd read, write;
};

// Only the reading end is non-blocking: the worker's stdout must be an ordinary one.
bool MakePipe(PipePair& made, bool large) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  made.read.Reset(ends[0]);
  made.write.Reset(ends[1]);
  if (large) ::fcntl(ends[0], F_SETPIPE_SZ, kLargePipe);
  return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

// Two pipes and a link per worker exceed the usual soft limit from 300 workers on.
std::optional<rlimit> RaiseDescriptorLimit() {
  rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0) return std::nullopt;
  rlimit raised{before.rlim_max, before.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return std::nullopt;
  return before;
}

constexpr uint64_t kOwnDescriptors = 24;  // of an agent

std::string Shortage(size_t workers, uint64_t each, uint64_t limit, const std::string& host) {
  const uint64_t needed = kOwnDescriptors + each * workers;
  if (limit >= needed) return "";
  return Format(
      "Too many open files: the limit of open files on host {} is {} (ulimit -n), and its {} ranks "
      "need {}; raise it (ulimit -n {}, nofile in /etc/security/limits.conf, --ulimit nofile for a "
      "container), or start fewer ranks there",
      host, limit, workers, needed, needed);
}

}  // namespace

std::string DescriptorShortage(size_t workers, uint64_t limit, const std::string& host) {
  return Shortage(workers, 2, limit, host);  // the pipes of stdout and stderr
}

std::string LinkShortage(size_t workers, uint64_t limit, const std::string& host) {
  return Shortage(workers, 3, limit, host);
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

LocalProcessHost::LocalProcessHost(asio::io_context& io, ProcessObserver& observer, int cgroup_fd)
    : io_(io),
      observer_(observer),
      cgroup_fd_(cgroup_fd),
      child_signal_(io, SIGCHLD),
      buffer_(kOutputBytes),
      worker_descriptor_limit_(RaiseDescriptorLimit()) {
  WaitForChildren();
}

LocalProcessHost::~LocalProcessHost() = default;

void LocalProcessHost::WaitForChildren() {
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    Reap();
    WaitForChildren();
  });
}

SpawnOutcome LocalProcessHost::Spawn(uint32_t number, const SpawnRequest& request) {
  const bool gives_result = request.function_fd >= 0;
  PipePair out, err, result;
  if (!MakePipe(out, number < kLargePipes) || !MakePipe(err, false) ||
      (gives_result && !MakePipe(result, number < kLargePipes))) {
    return {0, errno,
            std::string("no pipe could be made for the worker's output: ") + std::strerror(errno)};
  }
  SpawnOutcome outcome =
      SpawnProgram(request, {request.stdin_fd, out.write.get(), err.write.get(), true,
                             worker_descriptor_limit_, cgroup_fd_, result.write.get(), true});
  if (outcome.pid == 0) return outcome;
  auto worker = std::make_unique<Worker>(io_);
  worker->number = number;
  worker->pid = outcome.pid;
  UniqueFd* const ends[kOutputStreams] = {&out.read, &err.read, &result.read};
  for (size_t stream = 0; stream < kOutputStreams; ++stream) {
    if (!ends[stream]->valid()) continue;
    worker->pipes[stream] = std::make_shared<Pipe>(io_);
    worker->pipes[stream]->end.assign(ends[stream]->Release());
  }
  by_pid_[outcome.pid] = worker.get();
  Worker& made = *(workers_[number] = std::move(worker));
  WaitForOutput(made);
  return outcome;
}

void LocalProcessHost::WaitForOutput(Worker& worker) {
  for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr, OutputStream::kResult})
    WaitForOutput(worker, stream);
}

void LocalProcessHost::WaitForOutput(Worker& worker, OutputStream stream) {
  std::shared_ptr<Pipe> pipe = worker.pipes[static_cast<int>(stream)];
  if (!pipe || pipe->waiting || held_) return;
  pipe->waiting = true;
  pipe->end.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this, &worker, stream, pipe](const asio::error_code& error) {
                         pipe->waiting = false;
                         if (error || held_) return;
                         ReadOutput(worker, stream);
                       });
}

void LocalProcessHost::ReadOutput(Worker& worker, OutputStream stream) {
  std::shared_ptr<Pipe>& pipe = worker.pipes[static_cast<int>(stream)];
  ssize_t got = ::read(pipe->end.native_handle(), buffer_.data(), buffer_.size());
  if (got > 0) {
    observer_.OnOutput(worker.number, stream, {buffer_.data(), static_cast<size_t>(got)});
    return WaitForOutput(worker, stream);
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WaitForOutput(worker, stream);
  pipe.reset();
  observer_.OnOutputEnd(worker.number, stream);
  ReportIfOver(worker, false);
}

bool LocalProcessHost::Reap() {
  return ReapAndCheckNoChildren([this](pid_t pid, int status) { NoteReaped(pid, status); });
}

void LocalProcessHost::NoteReaped(pid_t pid, int wait_status) {
  auto known = by_pid_.find(pid);
  if (known == by_pid_.end()) return;  // an orphan of a worker
  Worker& worker = *known->second;
  by_pid_.erase(known);
  worker.end = FromWaitStatus(wait_status);
  worker.noticed = SteadyNow();
  worker.exit_timer.expires_after(kOutputAfterExit);
  worker.exit_timer.async_wait([this, &worker](const asio::error_code& error) {
    if (!error) ReportIfOver(worker, true);
  });
  // Posted: the caller may be in the middle of an operation.
  asio::post(io_, [this, &worker] { ReportIfOver(worker, false); });
}

void LocalProcessHost::ReportIfOver(Worker& worker, bool now) {
  if (!worker.end || worker.reported) return;
  if (!now && !worker.output_ended()) return;
  worker.reported = true;
  worker.exit_timer.cancel();
  observer_.OnExit(worker.number, *worker.end, worker.noticed);
}

void LocalProcessHost::Signal(uint32_t number, int signal) {
  auto found = workers_.find(number);
  // Not reaped yet, so the pid (and its process group) is still the worker's.
  if (found != workers_.end() && !found->second->end) ::kill(-found->second->pid, signal);
}

void LocalProcessHost::Kill(uint32_t number) {
  auto found = workers_.find(number);
  if (found == workers_.end()) return;
  pid_t pid = found->second->pid;
  std::vector<ProcessInfo> all = ListProcesses();
  std::vector<ProcessInfo> targets =
      found->second->end ? std::vector<ProcessInfo>() : DescendantsOf(pid, all);
  // Only among our descendants: once the worker is reaped, its session number may belong to a
  // stranger.
  for (const ProcessInfo& process : DescendantsOf(::getpid(), all)) {
    if (process.session == pid) targets.push_back(process);
  }
  Signal(number, SIGKILL);
  for (const ProcessInfo& process : targets) SignalProcess(process, SIGKILL);
}

void LocalProcessHost::HoldOutput(bool hold) {
  if (held_ == hold) return;
  held_ = hold;
  if (hold) return;
  for (auto& [number, worker] : workers_) WaitForOutput(*worker);
}

bool LocalProcessHost::OutputEnded() const {
  for (const auto& [number, worker] : workers_) {
    if (!worker->output_ended()) return false;
  }
  return true;
}

}  // namespace hvd
