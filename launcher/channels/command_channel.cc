#include "launcher/channels/command_channel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "launcher/process/spawn.h"
#include "runtime/base/env.h"

namespace hvd {
namespace {

// A grandchild (a ControlMaster) may hold stderr for ever.
constexpr auto kLastOutputWait = std::chrono::milliseconds(200);
constexpr size_t kMaxOutput = 4096;

std::vector<std::string> CommandEnvironment() {
  std::vector<std::string> environment;
  for (const auto& [name, value] : AllEnv()) {
    if (name != "SSH_ASKPASS_REQUIRE") environment.push_back(name + "=" + value);
  }
  environment.push_back("SSH_ASKPASS_REQUIRE=never");  // nothing prompts
  return environment;
}

}  // namespace

CommandChannel::CommandChannel(asio::io_context& io, std::vector<std::string> command,
                               CommandEndReader read_end, std::shared_ptr<LocalFamily> family,
                               CommandOutputReader read_output)
    : io_(io),
      command_(std::move(command)),
      read_end_(std::move(read_end)),
      read_output_(std::move(read_output)),
      family_(std::move(family)),
      child_signal_(io, SIGCHLD),
      limit_(io) {}

void CommandChannel::Open(ChannelObserver& observer) {
  observer_ = &observer;
  observer_->OnStage(ChannelStage::kConnect);
  int stream[2] = {-1, -1}, errors[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) != 0 ||
      ::pipe2(errors, O_CLOEXEC) != 0) {
    return Finish(
        {ChannelStage::kConnect, std::string("no pipes could be made: ") + std::strerror(errno)});
  }
  UniqueFd ours(stream[0]), theirs(stream[1]), printed(errors[0]), saying(errors[1]);
  WaitForChild();
  SpawnOutcome child = SpawnProgram({command_, CommandEnvironment(), "/"},
                                    {theirs.get(), theirs.get(), saying.get()});
  if (child.pid == 0) return Finish({ChannelStage::kConnect, child.reason});
  pid_ = child.pid;
  family_->Add(pid_);
  UniqueFd also_ours(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 0));
  stream_ = std::make_unique<BytePump>(
      io_, std::move(ours), std::move(also_ours),
      BytePumpHandlers{[this](std::string_view bytes) { OnBytes(bytes); },
                       [this] { observer_->OnWritable(); }, [this] { OnStreamEnd(); }});
  errors_ = std::make_unique<BytePump>(
      io_, std::move(printed), UniqueFd(),
      BytePumpHandlers{[this](std::string_view bytes) { OnCommandOutput(bytes); }, [] {},
                       [this] {
                         errors_ended_ = true;
                         EndIfOver();
                       }});
}

size_t CommandChannel::Write(std::string_view bytes) {
  return stream_ ? stream_->Write(bytes) : bytes.size();
}

void CommandChannel::OnBytes(std::string_view bytes) {
  if (!connected_) {
    connected_ = true;
    observer_->OnStage(ChannelStage::kRunning);
  }
  observer_->OnBytes(bytes);
}

void CommandChannel::OnCommandOutput(std::string_view bytes) {
  output_.append(bytes);
  if (output_.size() > 2 * kMaxOutput) output_.erase(0, output_.size() - kMaxOutput);
  if (read_output_) read_output_(output_);
}

void CommandChannel::Close() {
  if (closed_ || reported_ || !stream_) return;
  closed_ = true;
  OnStreamEnd();
}

void CommandChannel::Kill() {
  if (reported_ || pid_ == 0) return;
  killed_ = true;
  ::kill(-pid_, SIGKILL);  // with its children, such as a proxy command
  if (stream_) stream_->Close();
  stream_ended_ = errors_ended_ = true;
  asio::post(io_, [this] { EndIfOver(); });
}

void CommandChannel::WaitForChild() {
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error || reported_) return;  // a signal may already be queued when the wait is cancelled
    family_->Reap();
    WaitForChild();
    EndIfOver();
  });
}

void CommandChannel::OnStreamEnd() {
  stream_->Close();
  stream_ended_ = true;
  limit_.expires_after(kChannelEndLimit);
  limit_.async_wait([this](const asio::error_code& error) {
    if (!error) Kill();
  });
  asio::post(io_, [this] { EndIfOver(); });
}

// The channel is over once the program is reaped and its output has ended.
void CommandChannel::EndIfOver() {
  if (reported_ || pid_ == 0) return;
  family_->Reap();
  std::optional<int> status = family_->StatusOf(pid_);
  if (!status) return;
  if (!stream_ended_ && !killed_) return;  // its last bytes come first
  if (!errors_ended_) {
    errors_ended_ = true;
    limit_.expires_after(kLastOutputWait);
    limit_.async_wait([this](const asio::error_code& error) {
      if (!error) EndIfOver();
    });
    return;
  }
  ChannelEnd end = read_end_({*status, output_, connected_, killed_});
  if (closed_) end.stage = ChannelStage::kClosed;
  Finish(std::move(end));
}

void CommandChannel::Finish(ChannelEnd end) {
  if (reported_) return;
  reported_ = true;
  if (errors_) errors_->Close();
  limit_.cancel();
  child_signal_.cancel();
  asio::post(io_, [this, end = std::move(end)] { observer_->OnEnd(end); });
}

}  // namespace hvd
