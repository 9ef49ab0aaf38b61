#include "launcher/process/links/link_listener.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr auto kStuckRest = std::chrono::milliseconds(100);

}  // namespace

LinkListener::LinkListener(asio::io_context& io, OnClient on_client, std::chrono::milliseconds rest)
    : on_client_(std::move(on_client)), rest_(rest), listener_(io), pause_(io) {}

Status LinkListener::Listen(const std::string& abstract_name) {
  Result<UniqueFd> fd = ListenLink(abstract_name);
  if (!fd.ok()) return fd.status();
  Serve(std::move(*fd));
  return Status::Ok();
}

void LinkListener::Serve(UniqueFd listener) {
  listener_.assign(listener.Release());
  Wait();
}

void LinkListener::Close() {
  asio::error_code ignored;
  (void)listener_.close(ignored);
  pause_.cancel();
}

void LinkListener::Wait() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         if (error) return;
                         AcceptAll();
                         if (!listener_.is_open()) return;
                         const auto rest = stuck_ ? std::max(rest_, kStuckRest) : rest_;
                         if (rest.count() == 0) return Wait();
                         Rest(rest);
                       });
}

void LinkListener::Rest(std::chrono::milliseconds time) {
  pause_.expires_after(time);
  pause_.async_wait([this](const asio::error_code& error) {
    if (!error && listener_.is_open()) Wait();
  });
}

void LinkListener::AcceptAll() {
  while (listener_.is_open()) {
    Result<LinkClient> client = AcceptLink(listener_.native_handle());
    if (client.ok()) {
      stuck_ = false;
      on_client_(std::move(*client));
      continue;
    }
    const bool none_waits = client.status().code() == Code::kInProgress;
    if (!none_waits && !stuck_) LogWarning(client.status().message() + "; trying again");
    stuck_ = !none_waits;
    return;
  }
}

}  // namespace hvd
