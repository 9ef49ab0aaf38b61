#include "launcher/channels/ssh/ssh_dialer.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "launcher/channels/late_host.h"
#include "runtime/base/text/format.h"
#include "runtime/net/tcp_socket.h"

namespace hvd {
namespace {

using std::chrono::seconds;

// Limit for each address but the last: one that drops packets must not use up the time of the
// others.
constexpr Duration kConnectLimit = seconds(3);
constexpr Duration kInLine = seconds(3);
constexpr Duration kBetweenAttempts = seconds(1);
constexpr Duration kProxyOutputWait = seconds(2);
// Time within which a host that is cut off is detected, whether or not data is in flight to it.
constexpr SilenceLimits kSilence{.idle_s = 4, .interval_s = 2, .probes = 3, .sending_ms = 10'000};

int FamilyOf(SshAddressFamily family) {
  if (family == SshAddressFamily::kInet) return AF_INET;
  return family == SshAddressFamily::kInet6 ? AF_INET6 : AF_UNSPEC;
}

}  // namespace

SshDialer::SshDialer(SshHub& hub, const SshConfig& config, std::string config_file,
                     std::shared_ptr<StageWait> wait)
    : hub_(hub), config_(config), config_file_(std::move(config_file)), wait_(std::move(wait)) {
  place_.at = Format("{} port {}", config_.hostname, config_.port);
}

asio::awaitable<bool> SshDialer::Resolve() {
  wait_->Enter(ChannelStage::kResolve);
  if (!ProxyCommand(config_, "").empty()) co_return !wait_->aborted();  // the proxy does
  auto result = std::make_shared<std::optional<LookupResult>>();
  hub_.names().Find(config_.hostname, config_.port, FamilyOf(config_.address_family),
                    [weak = std::weak_ptr(wait_), result](LookupResult found) {
                      *result = std::move(found);
                      if (auto wait = weak.lock()) wait->Wake();
                    });
  if (!co_await wait_->Until([&] { return result->has_value(); })) co_return false;
  addresses_ = std::move((*result)->addresses);
  if (addresses_.empty()) {
    may_pass_ = (*result)->may_pass && MayResolveLater(config_.hostname);
    co_return wait_->Fail(CannotResolve(config_, (*result)->reason));
  }
  co_return true;
}

asio::awaitable<UniqueFd> SshDialer::Connect() {
  wait_->Enter(ChannelStage::kConnect);
  if (addresses_.empty()) {
    const bool mine = co_await EnterGate("proxy " + config_.proxy_jump + config_.proxy_command);
    co_return mine ? StartProxy() : UniqueFd();
  }
  std::vector<ConnectFailure> failures;
  for (uint32_t attempt = 0; attempt < std::max(1U, config_.connection_attempts); ++attempt) {
    if (attempt > 0) co_await wait_->Pause(kBetweenAttempts);
    failures.clear();
    UniqueFd socket = co_await ConnectOnce(&failures);
    if (socket.valid() || wait_->aborted()) co_return socket;
  }
  for (const ConnectFailure& failure : failures) {
    if (no_answer_.empty()) no_answer_ = NoAnswerText(failure.error);
  }
  wait_->Fail(CannotConnect(failures));
  co_return UniqueFd();
}

void SshDialer::NoteSilence() { no_answer_ = NoAnswerText(ECONNRESET); }

asio::awaitable<UniqueFd> SshDialer::ConnectOnce(std::vector<ConnectFailure>* failures) {
  for (const FoundAddress& address : addresses_) {
    if (!co_await EnterGate(address.text)) co_return UniqueFd();
    int error = 0;
    UniqueFd socket = co_await ConnectTo(address, &error);
    if (wait_->aborted()) co_return UniqueFd();
    if (error == 0) {
      place_.at = address.text;
      PrepareTcp(socket.get(), kSilence);
      co_return socket;
    }
    LeaveGate();
    failures->push_back({address.text, error});
  }
  co_return UniqueFd();
}

asio::awaitable<UniqueFd> SshDialer::ConnectTo(const FoundAddress& address, int* error) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    *error = errno;
    co_return UniqueFd();
  }
  if (::connect(fd.get(), address.get(), address.length) == 0) co_return fd;
  if (*error = errno; *error != EINPROGRESS) co_return UniqueFd();
  asio::posix::stream_descriptor watched(hub_.io(), ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto done = std::make_shared<bool>(false);
  watched.async_wait(asio::posix::stream_descriptor::wait_write,
                     [wait = wait_, done](const asio::error_code&) {
                       *done = true;
                       wait->Wake();
                     });
  Duration limit = Duration::max();
  if (config_.connect_timeout_s.value_or(0) > 0) limit = seconds(*config_.connect_timeout_s);
  if (&address != &addresses_.back()) limit = std::min(limit, kConnectLimit);
  const TimePoint until = std::min(wait_->In(limit), wait_->end());
  if (!co_await wait_->WaitFor([&] { return *done; }, until)) {
    *error = ETIMEDOUT;
    co_return UniqueFd();
  }
  socklen_t length = sizeof *error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, error, &length);
  co_return fd;
}

// Time spent waiting for other logins is not this host's fault: there is no limit, and the stage
// restarts repeatedly.
asio::awaitable<bool> SshDialer::EnterGate(const std::string& address) {
  gate_ = address;
  auto may_enter = std::make_shared<bool>(false);
  ticket_ = hub_.EnterGate(address, [weak = std::weak_ptr(wait_), may_enter] {
    *may_enter = true;
    if (auto wait = weak.lock()) wait->Wake();
  });
  while (!co_await wait_->WaitFor([&] { return *may_enter; }, wait_->In(kInLine)) &&
         !wait_->aborted())
    wait_->Enter(wait_->stage());
  wait_->Restart();
  co_return !wait_->aborted();
}

void SshDialer::LeaveGate() {
  if (ticket_) hub_.LeaveGate(gate_, *std::exchange(ticket_, std::nullopt));
}

UniqueFd SshDialer::StartProxy() {
  proxy_ = std::make_shared<SshProgram>(hub_);
  place_.through = config_.proxy_command.empty() ? "jump host " + config_.proxy_jump
                                                 : "ProxyCommand " + config_.proxy_command;
  Status started = proxy_->Start(ProxyCommand(config_, config_file_),
                                 [weak = std::weak_ptr(wait_)](const SshProgram&, int) {
                                   if (auto wait = weak.lock()) wait->Wake();
                                 });
  if (started.ok()) return proxy_->ReleaseSocket();
  wait_->Fail("the way to it cannot be started: " + started.message());
  return UniqueFd();
}

asio::awaitable<void> SshDialer::ReceiveProxy(bool over) {
  if (!proxy_) co_return;
  if (over) co_await wait_->WaitFor([this] { return proxy_->over(); }, wait_->In(kProxyOutputWait));
  place_.proxy_errors = proxy_->errors();
}

void SshDialer::HangUp() {
  if (proxy_) proxy_->Kill();
  LeaveGate();
}

}  // namespace hvd
