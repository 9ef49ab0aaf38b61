#include "launcher/channels/ssh/ssh_channel.h"

#include <fcntl.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/channels/ssh/keys/agent_client.h"
#include "launcher/channels/ssh/keys/user_keys.h"
#include "launcher/channels/ssh/ssh_dialer.h"
#include "launcher/channels/ssh/ssh_facts.h"
#include "launcher/channels/ssh/ssh_program.h"
#include "launcher/channels/ssh/ssh_reasons.h"
#include "launcher/channels/ssh/ssh_session.h"
#include "launcher/channels/ssh/stage_wait.h"
#include "launcher/process/byte_pump.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Step = SshSession::Step;

constexpr auto kCloseLimit = std::chrono::seconds(4);
constexpr auto kKeepAlive = std::chrono::seconds(15);
constexpr size_t kReadBytes = 128 * 1024;

int64_t SecondsIn(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

// Lives as long as one of its operations is pending.
class SshChannel::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<SshHub> hub, SshRequest request)
      : hub_(std::move(hub)),
        request_(std::move(request)),
        wait_(std::make_shared<StageWait>(hub_->io(), clock_, request_.stage_limit, WaitHooks())),
        dialer_(*hub_, request_.config, request_.config_file, wait_),
        keep_alive_(hub_->io()),
        buffer_(kReadBytes, '\0') {}

  void Open(ChannelObserver& observer);
  size_t Write(std::string_view bytes);
  void Close();
  void Abort(std::string reason) {
    if (!over_) wait_->Abort(std::move(reason));
  }
  void Forget() {
    observer_ = nullptr;
    if (!over_) dialer_.LeaveGate();  // even if the io_context no longer runs
    Abort("its channel is gone");
  }
  const std::string& ssh_might() const { return ssh_might_; }

 private:
  enum class Greeting { kDone, kRefused, kFailed };

  StageWait::Hooks WaitHooks();
  const SshConfig& config() const { return request_.config; }
  const SshPlace& place() const { return dialer_.place(); }
  bool Fail(std::string reason) { return wait_->Fail(std::move(reason)); }

  asio::awaitable<void> Run();
  asio::awaitable<bool> Reach();
  void Attach(UniqueFd socket);
  void Detach();

  template <typename Call>
  asio::awaitable<Step> Drive(Call call);
  asio::awaitable<Greeting> Greet();
  bool CheckHost();
  asio::awaitable<bool> LogIn();
  asio::awaitable<bool> AskAgent(std::vector<AgentKey>* keys);
  asio::awaitable<Step> TryKey(const LoginKey& key);
  asio::awaitable<bool> StartCommand();
  asio::awaitable<void> Carry();
  void Deliver();
  void ScheduleKeepAlive();
  void Flush();
  void NotifyWritable();
  asio::awaitable<void> Finish();

  std::shared_ptr<SshHub> hub_;
  SshRequest request_;
  SteadyClock clock_;
  ChannelObserver* observer_ = nullptr;
  std::shared_ptr<StageWait> wait_;  // of the one coroutine, Run
  SshDialer dialer_;
  asio::steady_timer keep_alive_;
  bool closed_ = false, over_ = false;
  std::string ssh_might_;

  std::unique_ptr<BytePump> pump_;
  std::vector<std::unique_ptr<BytePump>> old_pumps_;  // their handlers may still be queued
  std::unique_ptr<SshSession> session_;
  bool fresh_ = false;  // bytes arrived
  int lost_ = 0;        // errno
  int fd_ = -1;         // the pump's

  std::unique_ptr<AgentClient> agent_;
  bool running_ = false, heard_ = false, want_writable_ = false, killed_ = false;
  std::string errors_, buffer_;
};

StageWait::Hooks SshChannel::Connection::WaitHooks() {
  return {[this](ChannelStage stage) {
            if (observer_ != nullptr) observer_->OnStage(stage);
          },
          [this](ChannelStage stage) {
            return TookTooLong(stage, place(), SecondsIn(request_.stage_limit));
          }};
}

// ---- calls by others

void SshChannel::Connection::Open(ChannelObserver& observer) {
  observer_ = &observer;
  asio::co_spawn(
      hub_->io(), [self = shared_from_this()] { return self->Run(); },
      [self = shared_from_this()](std::exception_ptr) {});
}

size_t SshChannel::Connection::Write(std::string_view bytes) {
  if (over_ || wait_->aborted() || wait_->failed() || closed_) return bytes.size();
  size_t written = 0;
  while (running_ && written < bytes.size()) {
    size_t count = session_->Write(bytes.substr(written));
    Flush();
    if (count == 0) break;
    written += count;
  }
  if (written < bytes.size()) want_writable_ = true;
  return written;
}

void SshChannel::Connection::Close() {
  if (over_ || wait_->aborted() || wait_->failed() || std::exchange(closed_, true)) return;
  wait_->Rename(ChannelStage::kClosed);
  if (!running_) return Abort("");
  wait_->EndAt(wait_->In(kCloseLimit));
  session_->SendEof();
  Flush();
  wait_->Wake();
}

// ---- from the name to the login

asio::awaitable<void> SshChannel::Connection::Run() {
  try {
    if (co_await Reach() && co_await LogIn()) {
      dialer_.LeaveGate();
      if (co_await StartCommand()) co_await Carry();
    }
  } catch (const std::exception& failure) {  // out of memory or descriptors
    Fail(std::string("hvdrun cannot go on with it: ") + failure.what());
  }
  co_await Finish();
}

// Connects from the name to a verified host. Starts over if the server refuses because it has too
// many connections.
asio::awaitable<bool> SshChannel::Connection::Reach() {
  RefusalPatience patience;
  if (!co_await dialer_.Resolve()) co_return false;
  while (true) {
    UniqueFd socket = co_await dialer_.Connect();
    if (!socket.valid()) co_return false;
    Attach(std::move(socket));
    Greeting greeting = co_await Greet();
    if (greeting == Greeting::kDone) co_return CheckHost();
    if (greeting == Greeting::kFailed) co_return false;
    dialer_.NoteRefusal();
    std::string opening = session_->opening();
    Detach();
    std::optional<Duration> delay = patience.OnRefusal(wait_->Now(), hub_->Chance());
    if (!delay) {
      if (opening.empty()) dialer_.NoteSilence();
      co_return Fail(Refused(place(), opening, patience.refusals()));
    }
    co_await wait_->Pause(*delay);
    if (wait_->aborted()) co_return false;
  }
}

void SshChannel::Connection::Attach(UniqueFd socket) {
  session_ = std::make_unique<SshSession>();
  lost_ = 0;
  UniqueFd also(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  fd_ = socket.get();
  // The handlers hold no owner: pumps are kept until none of their handlers can be queued.
  pump_ = std::make_unique<BytePump>(hub_->io(), std::move(socket), std::move(also),
                                     BytePumpHandlers{[this](std::string_view bytes) {
                                                        session_->Feed(bytes);
                                                        fresh_ = true;
                                                        wait_->Wake();
                                                      },
                                                      [this] {
                                                        Flush();
                                                        NotifyWritable();
                                                      },
                                                      [this] {
                                                        lost_ = pump_->error();
                                                        pump_->Close();
                                                        session_->FeedEnd();
                                                        fresh_ = true;
                                                        wait_->Wake();
                                                      }});
}

void SshChannel::Connection::Detach() {
  if (pump_) {
    pump_->Close();
    old_pumps_.push_back(std::move(pump_));
  }
  dialer_.HangUp();
}

// ---- SSH

template <typename Call>
asio::awaitable<Step> SshChannel::Connection::Drive(Call call) {
  while (true) {
    fresh_ = false;
    Step step = call();
    Flush();
    if (step == Step::kFailed || step == Step::kDone) co_return step;
    if (session_->gone()) co_return Step::kFailed;
    if (!co_await wait_->Until([this] { return fresh_; })) co_return Step::kFailed;
  }
}

void SshChannel::Connection::Flush() {
  while (pump_ && pump_->open()) {
    std::string_view out = session_->Outgoing();
    size_t count = out.empty() ? 0 : pump_->Write(out);
    if (count == 0) return;
    session_->Consume(count);
  }
}

asio::awaitable<SshChannel::Connection::Greeting> SshChannel::Connection::Greet() {
  wait_->Enter(ChannelStage::kKeyExchange);
  const KnownHosts& known = hub_->known_hosts().Of(config());
  KnownHostsName name = NameInKnownHosts(config());
  bool offered =
      session_->Offer(AlgorithmsToOffer(config(), KnownTypes(known, name.host, name.port)));
  Step step = Step::kFailed;
  if (offered) step = co_await Drive([this] { return session_->Handshake(fd_); });
  if (step == Step::kDone) co_return Greeting::kDone;
  if (wait_->aborted() || wait_->failed()) co_return Greeting::kFailed;
  co_await dialer_.ReceiveProxy(session_->gone());
  const std::string& opening = session_->opening();
  if (session_->gone() && IsCrowded(opening, place().proxy_errors)) co_return Greeting::kRefused;
  if (!opening.empty() && !session_->is_ssh_server()) {
    Fail(NoSshServer(place(), opening));
  } else if (session_->could_not_agree()) {
    Fail(NoCommonMethod(place(), session_->error()));
    ssh_might_ = "the server and hvdrun's own client have no algorithm in common";
  } else {
    Fail(ConnectionLost(wait_->stage(), place(), lost_, session_->error()));
  }
  co_return Greeting::kFailed;
}

bool SshChannel::Connection::CheckHost() {
  wait_->Enter(ChannelStage::kHostKey);
  std::string key = session_->HostKey();
  KnownHostsName name = NameInKnownHosts(config());
  HostKeyCheck check = CheckHostKey(hub_->known_hosts().Of(config()), name.host, name.port, key);
  if (check.verdict == HostKeyVerdict::kMatch) return true;
  if (check.verdict == HostKeyVerdict::kAuthorityOnly)
    ssh_might_ = "the host's authority may have signed its key";
  if (check.verdict != HostKeyVerdict::kUnknown ||
      !AcceptsUnknown(request_.unknown_keys, config().strict_host_keys)) {
    return Fail(HostKeyRefused(config(), check, key));
  }
  Status noted = hub_->known_hosts().Accept(config(), key);
  return noted.ok() || Fail(noted.message());
}

asio::awaitable<bool> SshChannel::Connection::LogIn() {
  wait_->Enter(ChannelStage::kLogin);
  LoginTrial trial;
  Step asked = co_await Drive([&] { return session_->AskMethods(config().user, &trial.methods); });
  if (asked == Step::kFailed)
    co_return Fail(ConnectionLost(wait_->stage(), place(), lost_, session_->error()));
  if (session_->logged_in()) co_return true;
  std::vector<AgentKey> agent_keys;
  if (!co_await AskAgent(&agent_keys)) co_return false;
  LoginKeys keys = OrderKeys(ReadIdentityFiles(config()), agent_keys, config().identities_only);
  trial.notes = keys.notes;
  bool by_key =
      std::find(trial.methods.begin(), trial.methods.end(), "publickey") != trial.methods.end();
  for (const LoginKey& key : keys.keys) {
    if (!by_key) break;
    if (co_await TryKey(key) == Step::kDone && session_->logged_in()) co_return true;
    if (wait_->aborted() || wait_->failed()) co_return false;
    trial.tried.push_back(key.name);
    trial.cut_off = session_->gone();
    if (trial.cut_off) break;
  }
  ssh_might_ = WhatSshMightDo(config(), {trial.methods, keys.skipped_kinds});
  co_return Fail(LoginRefused(config(), trial));
}

asio::awaitable<bool> SshChannel::Connection::AskAgent(std::vector<AgentKey>* keys) {
  std::string socket = AgentSocket(config());
  if (socket.empty()) co_return true;
  agent_ = std::make_unique<AgentClient>(hub_->io(), socket, [this] { wait_->Wake(); });
  agent_->Ask(AskForAgentKeys());
  if (!co_await wait_->Until([this] { return agent_->answered(); })) co_return false;
  *keys = ReadAgentKeys(agent_->PopAnswer()).value_or(std::vector<AgentKey>());
  co_return true;
}

asio::awaitable<Step> SshChannel::Connection::TryKey(const LoginKey& key) {
  std::string blob = LoginBlob(key.blob);
  bool asked = false, given = false;
  SshSession::Signer sign = [&](std::string_view data) -> std::optional<std::string> {
    if (key.key) {
      Result<std::string> made = key.key->Sign(data);
      return made.ok() ? *made : "";
    }
    if (!std::exchange(asked, true)) agent_->Ask(AskAgentToSign(key.blob, data));
    if (!agent_->answered()) return std::nullopt;
    given = true;
    return ReadAgentSignature(agent_->PopAnswer()).value_or("");
  };
  while (true) {
    fresh_ = false;
    Step step = session_->Login(config().user, blob, sign);
    Flush();
    if (step != Step::kMore) co_return step;
    if (session_->gone()) co_return Step::kFailed;
    if (!co_await wait_->Until([&] { return fresh_ || (asked && !given && agent_->answered()); }))
      co_return Step::kFailed;
  }
}

asio::awaitable<bool> SshChannel::Connection::StartCommand() {
  wait_->Enter(ChannelStage::kExec);
  agent_.reset();
  Step step = co_await Drive([this] { return session_->OpenChannel(); });
  if (step == Step::kDone)
    step = co_await Drive([this] { return session_->Exec(request_.command); });
  if (step == Step::kDone) co_return !wait_->aborted();
  if (session_->gone())
    co_return Fail(ConnectionLost(wait_->stage(), place(), lost_, session_->error()));
  co_return Fail("the server does not let the user " + config().user +
                 " run a command: " + session_->error() +
                 "; look at ForceCommand, PermitOpen and MaxSessions in its sshd_config");
}

// ---- while the agent runs

asio::awaitable<void> SshChannel::Connection::Carry() {
  wait_->Enter(ChannelStage::kRunning);
  wait_->EndAt(TimePoint::max());
  running_ = true;
  ScheduleKeepAlive();
  NotifyWritable();
  while (!wait_->aborted()) {
    fresh_ = false;
    Deliver();
    Flush();
    if (std::optional<SshSession::End> end = session_->Ended()) {
      if (NeverStarted(end->code, end->signal, heard_) && !closed_)
        wait_->Rename(ChannelStage::kExec);
      wait_->set_reason(CommandEnded(end->code, end->signal, errors_));
      killed_ = !end->signal.empty();
      session_->Disconnect();
      Flush();
      co_return;
    }
    if (session_->gone()) {
      co_await dialer_.ReceiveProxy(true);
      Fail(ConnectionLost(wait_->stage(), place(), lost_, session_->goodbye()));
      co_return;
    }
    NotifyWritable();
    co_await wait_->WaitFor([this, closed = closed_] { return fresh_ || closed_ != closed; },
                            wait_->end());
    if (closed_ && wait_->Now() >= wait_->end()) {
      Fail(Format("the agent did not end within {} s of being told; its connection was cut",
                  kCloseLimit.count()));
      co_return;
    }
  }
}

void SshChannel::Connection::Deliver() {
  while (size_t count = session_->Read(SshSession::Source::kStderr, buffer_.data(), kReadBytes))
    KeepTail(errors_, {buffer_.data(), count});
  while (!wait_->aborted()) {
    size_t count = session_->Read(SshSession::Source::kStdout, buffer_.data(), kReadBytes);
    if (count == 0) return;
    heard_ = true;
    if (observer_ != nullptr && !closed_) observer_->OnBytes({buffer_.data(), count});
  }
}

void SshChannel::Connection::NotifyWritable() {
  if (!running_ || over_ || closed_ || wait_->aborted() || observer_ == nullptr) return;
  if (session_->HasRoom() && std::exchange(want_writable_, false)) observer_->OnWritable();
}

void SshChannel::Connection::ScheduleKeepAlive() {
  keep_alive_.expires_after(kKeepAlive);
  keep_alive_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->over_) return;
    self->session_->KeepAlive();
    self->Flush();
    self->ScheduleKeepAlive();
  });
}

asio::awaitable<void> SshChannel::Connection::Finish() {
  running_ = false;
  keep_alive_.cancel();
  if (agent_) agent_->Close();
  Detach();
  wait_->ForgetAbort();  // from here on, aborting cannot speed it up
  co_await wait_->WaitFor([this] { return !dialer_.proxy_running(); }, TimePoint::max());
  over_ = true;
  // Runs after what the pumps' handlers have queued.
  asio::post(hub_->io(), [self = shared_from_this(),
                          end = ChannelEnd{wait_->stage(), wait_->reason(), dialer_.may_pass(),
                                           killed_, dialer_.no_answer()}] {
    if (self->observer_ != nullptr) self->observer_->OnEnd(end);
  });
}

// ---- SshChannel

SshChannel::SshChannel(std::shared_ptr<SshHub> hub, SshRequest request)
    : connection_(std::make_shared<Connection>(std::move(hub), std::move(request))) {}

SshChannel::~SshChannel() { connection_->Forget(); }

void SshChannel::Open(ChannelObserver& observer) { connection_->Open(observer); }
size_t SshChannel::Write(std::string_view bytes) { return connection_->Write(bytes); }
void SshChannel::Close() { connection_->Close(); }
void SshChannel::Kill() { connection_->Abort("its ssh connection was cut"); }
const std::string& SshChannel::ssh_might() const { return connection_->ssh_might(); }

}  // namespace hvd
