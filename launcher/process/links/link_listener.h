// LinkListener: listens at an abstract unix address for processes of this host. Each client is
// passed to the owner, which does all reads and writes.
//
// One thread, that of the io_context. The owner is called from there, and from AcceptAll(); it may
// close the listener in that call, but not destroy it.
#ifndef HVD_LAUNCHER_PROCESS_LINKS_LINK_LISTENER_H_
#define HVD_LAUNCHER_PROCESS_LINKS_LINK_LISTENER_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/link.h"

namespace hvd {

class LinkListener {
 public:
  // Called with clients of this user or root.
  using OnClient = std::function<void(LinkClient)>;

  // `rest`: pause after each batch of clients, so that processes that connect in a loop cannot
  // starve the thread.
  LinkListener(asio::io_context& io, OnClient on_client, std::chrono::milliseconds rest = {});

  // Fails if the address is in use.
  Status Listen(const std::string& abstract_name);
  // The same with a listening, non-blocking socket.
  void Serve(UniqueFd listener);
  // Stops accepting clients.
  void Close();

  // Accepts all pending clients at once.
  void AcceptAll();

 private:
  void Wait();
  void Rest(std::chrono::milliseconds time);

  const OnClient on_client_;
  const std::chrono::milliseconds rest_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer pause_;
  bool stuck_ = false;  // the last client could not be accepted
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LINKS_LINK_LISTENER_H_
