#include "launcher/channels/local_channel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "launcher/channels/command_end.h"
#include "launcher/process/cgroup.h"
#include "launcher/process/process_end.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/spawn.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kSweepLimit = std::chrono::seconds(3);

std::vector<std::string> AgentEnvironment(const std::string& job_id) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : AllEnv()) {
    if (name != "HVD_JOB_ID" && name != kUserStdinVariable && name != kLocalAgentName) {
      environment.push_back(name + "=" + value);
    }
  }
  environment.push_back("HVD_JOB_ID=" + job_id);  // so that a sweep finds the agent, too
  environment.push_back(std::string(kLocalAgentName) + "=1");
  return environment;
}

}  // namespace

LocalChannel::LocalChannel(asio::io_context& io, std::string job_id,
                           std::vector<std::string> command, std::shared_ptr<LocalFamily> family,
                           std::string program, int user_stdin)
    : io_(io),
      job_id_(std::move(job_id)),
      command_(std::move(command)),
      program_(std::move(program)),
      child_signal_(io, SIGCHLD),
      limit_(io),
      user_stdin_(user_stdin),
      family_(std::move(family)) {}

void LocalChannel::Open(ChannelObserver& observer) {
  observer_ = &observer;
  observer_->OnStage(stage_);
  BecomeSubreaper();  // orphans become our children
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Finish(std::string("no socket pair could be made: ") + std::strerror(errno));
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  WaitForChild();
  SpawnRequest request{command_, AgentEnvironment(job_id_), "/"};
  const UniqueFd user_stdin(
      user_stdin_ < 0 ? -1 : ::fcntl(user_stdin_, F_DUPFD_CLOEXEC, kKeptDescriptor));
  if (user_stdin.valid()) {
    request.environment.push_back(std::string(kUserStdinVariable) + "=1");
    request.kept_fd = user_stdin.get();
  }
  request.program = program_;
  SpawnOutcome agent = SpawnProgram(request, {theirs.get(), theirs.get(), 2, false});
  if (agent.pid == 0) return Finish(agent.reason);
  pid_ = agent.pid;
  family_->Add(pid_);
  stage_ = ChannelStage::kRunning;
  observer_->OnStage(stage_);
  UniqueFd also_ours(::dup(ours.get()));
  ::fcntl(also_ours.get(), F_SETFD, FD_CLOEXEC);
  pump_ = std::make_unique<BytePump>(
      io_, std::move(ours), std::move(also_ours),
      BytePumpHandlers{[this](std::string_view bytes) { observer_->OnBytes(bytes); },
                       [this] { observer_->OnWritable(); }, [this] { OnStreamEnd(); }});
}

size_t LocalChannel::Write(std::string_view bytes) {
  return pump_ ? pump_->Write(bytes) : bytes.size();
}

void LocalChannel::Close() {
  if (stage_ != ChannelStage::kRunning) return;
  stage_ = ChannelStage::kClosed;
  OnStreamEnd();
}

void LocalChannel::Kill() {
  if (reported_) return;
  KillOurs();
  asio::post(io_, [this] {
    stream_ended_ = true;
    EndIfOver();
  });
}

void LocalChannel::WaitForChild() {
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error || reported_) return;  // a signal may already be queued when the wait is cancelled
    family_->Reap();
    WaitForChild();
    EndIfOver();
  });
}

void LocalChannel::OnStreamEnd() {
  if (pump_) pump_->Close();
  stream_ended_ = true;
  limit_.expires_after(kChannelEndLimit);
  limit_.async_wait([this](const asio::error_code& error) {
    if (!error) Kill();
  });
  asio::post(io_, [this] { EndIfOver(); });
}

// The channel is over once the stream has ended and the agent's warden is reaped.
void LocalChannel::EndIfOver() {
  if (reported_ || !stream_ended_) return;
  bool nothing_left = family_->Reap();
  std::optional<int> status = family_->StatusOf(pid_);
  if (!status) return;
  std::string reason = ExitText(*status);
  if (!nothing_left || !reason.empty()) KillOurs();
  Finish(reason);
}

// Does not kill what other channels of this process have started.
void LocalChannel::KillOurs() {
  KillEverything(job_id_, family_->NotOf(pid_), kSweepLimit,
                 [this](pid_t pid, int status) { family_->NoteReaped(pid, status); });
}

std::string LocalChannel::ExitText(int status) const {
  std::string pid = Format(" (pid {})", pid_);
  if (WIFSIGNALED(status)) {
    return Format("the agent's warden{} was ended by signal {} ({})", pid, WTERMSIG(status),
                  ::strsignal(WTERMSIG(status)));
  }
  int code = WEXITSTATUS(status);
  if (code > kSignalBase) {
    return Format("the agent was ended by signal {} ({})", code - kSignalBase,
                  ::strsignal(code - kSignalBase));
  }
  return code == 0 ? "" : Format("the agent ended with exit code {}", code);
}

void LocalChannel::Finish(std::string reason) {
  if (reported_) return;
  reported_ = true;
  RemoveCgroup(job_id_);
  limit_.cancel();
  child_signal_.cancel();
  asio::post(io_, [this, end = ChannelEnd{stage_, std::move(reason)}] { observer_->OnEnd(end); });
}

}  // namespace hvd
