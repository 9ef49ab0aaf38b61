#include "launcher/overlay/dial/connector_loop.h"

#include <sys/epoll.h>

#include <array>
#include <asio/post.hpp>
#include <utility>

namespace hvd {

ConnectorLoop::ConnectorLoop(asio::io_context& io, const Clock& clock, MeshConnectorOptions options,
                             MeshListener listener, MeshConnectorOwner& owner)
    : io_(io),
      clock_(clock),
      owner_(owner),
      epoll_(io, ::epoll_create1(EPOLL_CLOEXEC)),
      timer_(io),
      connector_(std::move(options), epoll_.native_handle(), std::move(listener), *this) {
  WaitForEvents();
}

void ConnectorLoop::Dial(uint32_t peer, std::vector<MeshAddress> addresses) {
  // The connector may answer immediately, but the owner is never called from inside a call.
  asio::post(io_, [this, peer, addresses = std::move(addresses)] {
    connector_.Dial({peer}, addresses, clock_.Now());
    ScheduleTick();
  });
}

// The connector has its own epoll descriptor, which is readable when one of its sockets has an
// event.
void ConnectorLoop::WaitForEvents() {
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read,
                    [this](const asio::error_code& error) {
                      if (error) return;
                      HandleEvents();
                      if (epoll_.is_open()) WaitForEvents();
                    });
}

void ConnectorLoop::HandleEvents() {
  std::array<epoll_event, 64> events;
  int count = ::epoll_wait(epoll_.native_handle(), events.data(), events.size(), 0);
  for (int i = 0; i < count && epoll_.is_open(); ++i) {
    const uint64_t key = events[static_cast<size_t>(i)].data.u64;
    if (SourceOf(key) == MeshSource::kListener) {
      connector_.HandleListener(NumberOf(key), clock_.Now());
    } else {
      connector_.HandleNascent(NumberOf(key), clock_.Now());
    }
  }
  ScheduleTick();
}

void ConnectorLoop::ScheduleTick() {
  const TimePoint next = connector_.NextTick();
  if (next == TimePoint::max() || !epoll_.is_open()) return;
  timer_.expires_at(next);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    connector_.Tick(clock_.Now());
    ScheduleTick();
  });
}

void ConnectorLoop::Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) {
  ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, socket.get(), nullptr);
  owner_.Connected(peer, std::move(socket), greeting);
}

void ConnectorLoop::Unreachable(uint32_t peer, Status why) {
  owner_.Unreachable(peer, std::move(why));
}

void ConnectorLoop::Close() {
  epoll_.close();
  timer_.cancel();
  connector_.Close();
}

}  // namespace hvd
