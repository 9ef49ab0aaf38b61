#include "launcher/channels/ssh/ssh_channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/channels/ssh/agent_client.h"
#include "launcher/channels/ssh/ssh_facts.h"
#include "launcher/channels/ssh/ssh_program.h"
#include "launcher/channels/ssh/ssh_reasons.h"
#include "launcher/channels/ssh/ssh_session.h"
#include "launcher/channels/ssh/user_keys.h"
#include "launcher/channels/unresolved_name.h"
#include "launcher/process/byte_pump.h"
#include "runtime/net/tcp_socket.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using Step = SshSession::Step;

constexpr auto kCloseLimit = std::chrono::seconds(4);
// For an address that is not the last one: one that drops everything must not take the time of the
// others.
constexpr Duration kConnectLimit = std::chrono::seconds(3);
constexpr Duration kInLine = seconds(3);
constexpr auto kBetweenAttempts = std::chrono::seconds(1);
constexpr auto kProxyWords = std::chrono::seconds(2);
constexpr auto kKeepAlive = std::chrono::seconds(15);
constexpr size_t kReadBytes = 128 * 1024;
// A host that is cut off is noticed after so long, whether anything is on its way to it or not.
constexpr SilenceLimits kSilence{.idle_s = 4, .interval_s = 2, .probes = 3, .sending_ms = 10'000};

int FamilyOf(SshAddressFamily family) {
  if (family == SshAddressFamily::kInet) return AF_INET;
  return family == SshAddressFamily::kInet6 ? AF_INET6 : AF_UNSPEC;
}

TimePoint After(Duration limit) {
  return limit == SshRequest::kNoLimit ? TimePoint::max() : SteadyNow() + limit;
}

int64_t SecondsIn(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

// Lives as long as something of it is under way. Whatever happens sets a member and calls Wake; the
// coroutine waits, in one place, until what it needs is there, the stage has lasted too long, or
// somebody has ended it.
class SshChannel::Way : public std::enable_shared_from_this<Way> {
 public:
  Way(std::shared_ptr<SshHub> hub, SshRequest request)
      : hub_(std::move(hub)),
        request_(std::move(request)),
        wake_(hub_->io()),
        keep_alive_(hub_->io()),
        buffer_(kReadBytes, '\0') {
    place_.at = config().hostname + " port " + std::to_string(config().port);
  }

  void Open(ChannelObserver& observer);
  size_t Write(std::string_view bytes);
  void Close();
  void Abort(std::string reason);
  void Forget() {
    observer_ = nullptr;
    if (!over_) LeaveGate();  // also where the io_context does not run any more
    Abort("its channel is gone");
  }
  const std::string& ssh_might() const { return ssh_might_; }

 private:
  enum class Greeting { kDone, kRefused, kFailed };

  const SshConfig& config() const { return request_.config; }
  void Enter(ChannelStage stage);
  void Wake() { wake_.cancel(); }
  bool Fail(std::string reason);
  // Whether the condition came true. `until` passed: false, and no failure yet.
  template <typename Condition>
  asio::awaitable<bool> WaitFor(Condition condition, TimePoint until);
  // Whether the condition came true within the stage's limit; if not, the reason is set.
  template <typename Condition>
  asio::awaitable<bool> Until(Condition condition);

  asio::awaitable<void> Run();
  asio::awaitable<bool> Reach();
  asio::awaitable<bool> Resolve();
  asio::awaitable<bool> Connect();
  asio::awaitable<bool> ConnectOnce(std::vector<ConnectFailure>* failures);
  asio::awaitable<UniqueFd> ConnectTo(const FoundAddress& address, int* error);
  asio::awaitable<bool> EnterGate(const std::string& address);
  void LeaveGate();
  bool StartProxy();
  void Attach(UniqueFd socket);
  asio::awaitable<void> ReceiveProxy();
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
  ChannelObserver* observer_ = nullptr;
  asio::steady_timer wake_, keep_alive_;
  ChannelStage stage_ = ChannelStage::kResolve;
  TimePoint stage_end_ = TimePoint::max();
  bool closed_ = false, aborted_ = false, failed_ = false, over_ = false;
  std::string reason_, ssh_might_;
  bool may_pass_ = false;
  SshPlace place_;

  std::vector<FoundAddress> addresses_;
  std::optional<HandshakeGate::Ticket> ticket_;
  std::string gate_;
  bool may_enter_ = false;

  std::shared_ptr<SshProgram> proxy_;
  std::unique_ptr<BytePump> pump_;
  std::vector<std::unique_ptr<BytePump>> old_pumps_;  // their handlers may still be in the queue
  std::unique_ptr<SshSession> session_;
  bool fresh_ = false;  // something came
  int lost_ = 0;        // errno
  int fd_ = -1;         // the pump's

  std::unique_ptr<AgentClient> agent_;
  bool running_ = false, heard_ = false, want_writable_ = false;
  std::string errors_, buffer_;
};

// ---- what others call

void SshChannel::Way::Open(ChannelObserver& observer) {
  observer_ = &observer;
  asio::co_spawn(
      hub_->io(), [self = shared_from_this()] { return self->Run(); },
      [self = shared_from_this()](std::exception_ptr) {});
}

size_t SshChannel::Way::Write(std::string_view bytes) {
  if (over_ || aborted_ || failed_ || closed_) return bytes.size();
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

void SshChannel::Way::Close() {
  if (over_ || aborted_ || failed_ || std::exchange(closed_, true)) return;
  stage_ = ChannelStage::kClosed;
  if (!running_) return Abort("");
  stage_end_ = SteadyNow() + kCloseLimit;
  session_->SendEof();
  Flush();
  Wake();
}

void SshChannel::Way::Abort(std::string reason) {
  if (over_ || std::exchange(aborted_, true)) return;
  if (!failed_) reason_ = std::move(reason);
  Wake();
}

// ---- waiting

bool SshChannel::Way::Fail(std::string reason) {
  if (!std::exchange(failed_, true) && !aborted_) reason_ = std::move(reason);
  return false;
}

void SshChannel::Way::Enter(ChannelStage stage) {
  if (aborted_) return;
  stage_ = stage;
  stage_end_ = After(request_.stage_limit);
  if (observer_ != nullptr) observer_->OnStage(stage);
}

template <typename Condition>
asio::awaitable<bool> SshChannel::Way::WaitFor(Condition condition, TimePoint until) {
  while (!aborted_ && !condition()) {
    if (SteadyNow() >= until) co_return false;
    wake_.expires_at(until);
    asio::error_code ignored;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return !aborted_;
}

template <typename Condition>
asio::awaitable<bool> SshChannel::Way::Until(Condition condition) {
  while (!aborted_ && !condition()) {
    if (SteadyNow() >= stage_end_)
      co_return Fail(TookTooLong(stage_, place_, SecondsIn(request_.stage_limit)));
    wake_.expires_at(stage_end_);
    asio::error_code ignored;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return !aborted_;
}

// ---- the way there

asio::awaitable<void> SshChannel::Way::Run() {
  try {
    if (co_await Reach() && co_await LogIn()) {
      LeaveGate();
      if (co_await StartCommand()) co_await Carry();
    }
  } catch (const std::exception& failure) {  // out of memory or descriptors
    Fail(std::string("hvdrun cannot go on with it: ") + failure.what());
  }
  co_await Finish();
}

// From its name to a host that proved to be the right one. Where the server has too many at its
// connection, all over again.
asio::awaitable<bool> SshChannel::Way::Reach() {
  RefusalPatience patience;
  if (!co_await Resolve()) co_return false;
  while (true) {
    if (!co_await Connect()) co_return false;
    Greeting greeting = co_await Greet();
    if (greeting == Greeting::kDone) co_return CheckHost();
    if (greeting == Greeting::kFailed) co_return false;
    hub_->NoteRefusal(gate_);
    std::string opening = session_->opening();
    Detach();
    std::optional<Duration> delay = patience.OnRefusal(SteadyNow(), hub_->Chance());
    if (!delay) co_return Fail(Refused(place_, opening, patience.refusals()));
    co_await WaitFor([] { return false; }, SteadyNow() + *delay);
    if (aborted_) co_return false;
  }
}

asio::awaitable<bool> SshChannel::Way::Resolve() {
  Enter(ChannelStage::kResolve);
  if (!ProxyCommand(config(), "").empty()) co_return !aborted_;  // the proxy does
  auto result = std::make_shared<std::optional<LookupResult>>();
  hub_->names().Find(config().hostname, config().port, FamilyOf(config().address_family),
                     [weak = weak_from_this(), result](LookupResult found) {
                       *result = std::move(found);
                       if (auto self = weak.lock()) self->Wake();
                     });
  if (!co_await Until([&] { return result->has_value(); })) co_return false;
  addresses_ = std::move((*result)->addresses);
  if (addresses_.empty()) {
    may_pass_ = (*result)->may_pass && MayResolveLater(config().hostname);
    co_return Fail(CannotResolve(config(), (*result)->reason));
  }
  co_return true;
}

asio::awaitable<bool> SshChannel::Way::Connect() {
  Enter(ChannelStage::kConnect);
  if (addresses_.empty()) {
    bool mine = co_await EnterGate("proxy " + config().proxy_jump + config().proxy_command);
    co_return mine&& StartProxy();
  }
  std::vector<ConnectFailure> failures;
  for (uint32_t attempt = 0; attempt < std::max(1U, config().connection_attempts); ++attempt) {
    if (attempt > 0) co_await WaitFor([] { return false; }, SteadyNow() + kBetweenAttempts);
    failures.clear();
    if (co_await ConnectOnce(&failures)) co_return true;
    if (aborted_) co_return false;
  }
  co_return Fail(CannotConnect(failures));
}

asio::awaitable<bool> SshChannel::Way::ConnectOnce(std::vector<ConnectFailure>* failures) {
  for (const FoundAddress& address : addresses_) {
    if (!co_await EnterGate(address.text)) co_return false;
    int error = 0;
    UniqueFd socket = co_await ConnectTo(address, &error);
    if (aborted_) co_return false;
    if (error == 0) {
      place_.at = address.text;
      PrepareTcp(socket.get(), kSilence);
      Attach(std::move(socket));
      co_return true;
    }
    LeaveGate();
    failures->push_back({address.text, error});
  }
  co_return false;
}

asio::awaitable<UniqueFd> SshChannel::Way::ConnectTo(const FoundAddress& address, int* error) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    *error = errno;
    co_return UniqueFd();
  }
  if (::connect(fd.get(), address.get(), address.length) == 0) co_return fd;
  if (*error = errno; *error != EINPROGRESS) co_return UniqueFd();
  asio::posix::stream_descriptor watched(hub_->io(), ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto done = std::make_shared<bool>(false);
  watched.async_wait(asio::posix::stream_descriptor::wait_write,
                     [self = shared_from_this(), done](const asio::error_code&) {
                       *done = true;
                       self->Wake();
                     });
  Duration limit = SshRequest::kNoLimit;
  if (config().connect_timeout_s.value_or(0) > 0) limit = seconds(*config().connect_timeout_s);
  if (&address != &addresses_.back()) limit = std::min(limit, kConnectLimit);
  if (!co_await WaitFor([&] { return *done; }, std::min(After(limit), stage_end_))) {
    *error = ETIMEDOUT;
    co_return UniqueFd();
  }
  socklen_t length = sizeof *error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, error, &length);
  co_return fd;
}

// However long others are before us, that is not this host's fault: no limit, and the stage begins
// again and again.
asio::awaitable<bool> SshChannel::Way::EnterGate(const std::string& address) {
  gate_ = address;
  may_enter_ = false;
  ticket_ = hub_->EnterGate(address, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->may_enter_ = true;
    self->Wake();
  });
  while (!co_await WaitFor([this] { return may_enter_; }, After(kInLine)) && !aborted_)
    Enter(stage_);
  stage_end_ = After(request_.stage_limit);
  co_return !aborted_;
}

void SshChannel::Way::LeaveGate() {
  if (ticket_) hub_->LeaveGate(gate_, *std::exchange(ticket_, std::nullopt));
}

bool SshChannel::Way::StartProxy() {
  proxy_ = std::make_shared<SshProgram>(*hub_);
  place_.through = config().proxy_command.empty() ? "jump host " + config().proxy_jump
                                                  : "ProxyCommand " + config().proxy_command;
  Status started = proxy_->Start(ProxyCommand(config(), request_.config_file),
                                 [weak = weak_from_this()](const SshProgram&, int) {
                                   if (auto self = weak.lock()) self->Wake();
                                 });
  if (!started.ok()) return Fail("the way to it cannot be started: " + started.message());
  Attach(proxy_->TakeSocket());
  return true;
}

void SshChannel::Way::Attach(UniqueFd socket) {
  session_ = std::make_unique<SshSession>();
  lost_ = 0;
  UniqueFd also(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  fd_ = socket.get();
  // No owner in the handlers: pumps are kept until nothing of them can be in the queue any more.
  pump_ = std::make_unique<BytePump>(hub_->io(), std::move(socket), std::move(also),
                                     BytePumpHandlers{[this](std::string_view bytes) {
                                                        session_->Feed(bytes);
                                                        fresh_ = true;
                                                        Wake();
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
                                                        Wake();
                                                      }});
}

// What the proxy says about its end may come a little later than the end of the stream.
asio::awaitable<void> SshChannel::Way::ReceiveProxy() {
  if (!proxy_) co_return;
  if (session_->gone())
    co_await WaitFor([this] { return proxy_->over(); }, SteadyNow() + kProxyWords);
  place_.proxy_errors = proxy_->errors();
}

void SshChannel::Way::Detach() {
  if (pump_) {
    pump_->Close();
    old_pumps_.push_back(std::move(pump_));
  }
  if (proxy_) proxy_->Kill();
  LeaveGate();
}

// ---- SSH

template <typename Call>
asio::awaitable<Step> SshChannel::Way::Drive(Call call) {
  while (true) {
    fresh_ = false;
    Step step = call();
    Flush();
    if (step == Step::kFailed || step == Step::kDone) co_return step;
    if (session_->gone()) co_return Step::kFailed;
    if (!co_await Until([this] { return fresh_; })) co_return Step::kFailed;
  }
}

void SshChannel::Way::Flush() {
  while (pump_ && pump_->open()) {
    std::string_view out = session_->Outgoing();
    size_t count = out.empty() ? 0 : pump_->Write(out);
    if (count == 0) return;
    session_->Consume(count);
  }
}

asio::awaitable<SshChannel::Way::Greeting> SshChannel::Way::Greet() {
  Enter(ChannelStage::kKeyExchange);
  const KnownHosts& known = hub_->known_hosts().Of(config());
  KnownHostsName name = NameInKnownHosts(config());
  bool offered =
      session_->Offer(AlgorithmsToOffer(config(), KnownTypes(known, name.host, name.port)));
  Step step = Step::kFailed;
  if (offered) step = co_await Drive([this] { return session_->Handshake(fd_); });
  if (step == Step::kDone) co_return Greeting::kDone;
  if (aborted_ || failed_) co_return Greeting::kFailed;
  co_await ReceiveProxy();
  const std::string& opening = session_->opening();
  if (session_->gone() && IsCrowded(opening, place_.proxy_errors)) co_return Greeting::kRefused;
  if (!opening.empty() && !session_->is_ssh_server()) {
    Fail(NoSshServer(place_, opening));
  } else if (session_->could_not_agree()) {
    Fail(NoCommonMethod(place_, session_->error()));
    ssh_might_ = "the server and hvdrun's own client have no algorithm in common";
  } else {
    Fail(ConnectionLost(stage_, place_, lost_, session_->error()));
  }
  co_return Greeting::kFailed;
}

bool SshChannel::Way::CheckHost() {
  Enter(ChannelStage::kHostKey);
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

asio::awaitable<bool> SshChannel::Way::LogIn() {
  Enter(ChannelStage::kLogin);
  LoginTrial trial;
  Step asked = co_await Drive([&] { return session_->AskMethods(config().user, &trial.methods); });
  if (asked == Step::kFailed)
    co_return Fail(ConnectionLost(stage_, place_, lost_, session_->error()));
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
    if (aborted_ || failed_) co_return false;
    trial.tried.push_back(key.name);
    trial.cut_off = session_->gone();
    if (trial.cut_off) break;
  }
  ssh_might_ = WhatSshMightDo(config(), {trial.methods, keys.skipped_kinds});
  co_return Fail(LoginRefused(config(), trial));
}

asio::awaitable<bool> SshChannel::Way::AskAgent(std::vector<AgentKey>* keys) {
  std::string socket = AgentSocket(config());
  if (socket.empty()) co_return true;
  agent_ = std::make_unique<AgentClient>(hub_->io(), socket, [this] { Wake(); });
  agent_->Ask(AskForAgentKeys());
  if (!co_await Until([this] { return agent_->answered(); })) co_return false;
  *keys = ReadAgentKeys(agent_->TakeAnswer()).value_or(std::vector<AgentKey>());
  co_return true;
}

asio::awaitable<Step> SshChannel::Way::TryKey(const LoginKey& key) {
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
    return ReadAgentSignature(agent_->TakeAnswer()).value_or("");
  };
  while (true) {
    fresh_ = false;
    Step step = session_->Login(config().user, blob, sign);
    Flush();
    if (step != Step::kMore) co_return step;
    if (session_->gone()) co_return Step::kFailed;
    if (!co_await Until([&] { return fresh_ || (asked && !given && agent_->answered()); }))
      co_return Step::kFailed;
  }
}

asio::awaitable<bool> SshChannel::Way::StartCommand() {
  Enter(ChannelStage::kExec);
  agent_.reset();
  Step step = co_await Drive([this] { return session_->OpenChannel(); });
  if (step == Step::kDone)
    step = co_await Drive([this] { return session_->Exec(request_.command); });
  if (step == Step::kDone) co_return !aborted_;
  if (session_->gone()) co_return Fail(ConnectionLost(stage_, place_, lost_, session_->error()));
  co_return Fail("the server does not let the user " + config().user +
                 " run a command: " + session_->error() +
                 "; look at ForceCommand, PermitOpen and MaxSessions in its sshd_config");
}

// ---- while the agent runs

asio::awaitable<void> SshChannel::Way::Carry() {
  Enter(ChannelStage::kRunning);
  stage_end_ = TimePoint::max();
  running_ = true;
  ScheduleKeepAlive();
  NotifyWritable();
  while (!aborted_) {
    fresh_ = false;
    Deliver();
    Flush();
    if (std::optional<SshSession::End> end = session_->Ended()) {
      if (NeverStarted(end->code, end->signal, heard_) && !closed_) stage_ = ChannelStage::kExec;
      reason_ = CommandEnded(end->code, end->signal, errors_);
      session_->Disconnect();
      Flush();
      co_return;
    }
    if (session_->gone()) {
      co_await ReceiveProxy();
      Fail(ConnectionLost(stage_, place_, lost_, session_->goodbye()));
      co_return;
    }
    NotifyWritable();
    co_await WaitFor([this, closed = closed_] { return fresh_ || closed_ != closed; }, stage_end_);
    if (closed_ && SteadyNow() >= stage_end_) {
      Fail("the agent did not end within " + std::to_string(kCloseLimit.count()) +
           " s of being told; its connection was cut");
      co_return;
    }
  }
}

void SshChannel::Way::Deliver() {
  while (size_t count = session_->Read(SshSession::Source::kStderr, buffer_.data(), kReadBytes))
    KeepTail(errors_, {buffer_.data(), count});
  while (!aborted_) {
    size_t count = session_->Read(SshSession::Source::kStdout, buffer_.data(), kReadBytes);
    if (count == 0) return;
    heard_ = true;
    if (observer_ != nullptr && !closed_) observer_->OnBytes({buffer_.data(), count});
  }
}

void SshChannel::Way::NotifyWritable() {
  if (!running_ || over_ || closed_ || aborted_ || observer_ == nullptr) return;
  if (session_->HasRoom() && std::exchange(want_writable_, false)) observer_->OnWritable();
}

void SshChannel::Way::ScheduleKeepAlive() {
  keep_alive_.expires_after(kKeepAlive);
  keep_alive_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->over_) return;
    self->session_->KeepAlive();
    self->Flush();
    self->ScheduleKeepAlive();
  });
}

asio::awaitable<void> SshChannel::Way::Finish() {
  running_ = false;
  keep_alive_.cancel();
  if (agent_) agent_->Close();
  Detach();
  aborted_ = false;  // what is left cannot be hurried any more
  if (proxy_) co_await WaitFor([this] { return !proxy_->running(); }, TimePoint::max());
  over_ = true;
  // Later than what the pumps' handlers have in the queue.
  asio::post(hub_->io(), [self = shared_from_this(), end = ChannelEnd{stage_, reason_, may_pass_}] {
    if (self->observer_ != nullptr) self->observer_->OnEnd(end);
  });
}

// ---- SshChannel

SshChannel::SshChannel(std::shared_ptr<SshHub> hub, SshRequest request)
    : method_(std::make_shared<Way>(std::move(hub), std::move(request))) {}

SshChannel::~SshChannel() { method_->Forget(); }

void SshChannel::Open(ChannelObserver& observer) { method_->Open(observer); }
size_t SshChannel::Write(std::string_view bytes) { return method_->Write(bytes); }
void SshChannel::Close() { method_->Close(); }
void SshChannel::Kill() { method_->Abort("its ssh connection was cut"); }
const std::string& SshChannel::ssh_might() const { return method_->ssh_might(); }

}  // namespace hvd
