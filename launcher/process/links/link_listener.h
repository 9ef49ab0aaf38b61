// LinkListener: an abstract unix address at which processes of this host connect. Each client is
// handed to the owner as it comes; the owner alone reads and writes its socket.
//
// One thread, that of the io_context. The owner is called from there, and from AcceptAll(); it may
// close the listener in that call, and not destroy it.
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
  // Of this user, or root.
  using OnClient = std::function<void(LinkClient)>;

  // `rest`: how long it looks at nobody after each round of clients, so that processes that connect
  // again and again do not keep the thread from its work.
  LinkListener(asio::io_context& io, OnClient on_client, std::chrono::milliseconds rest = {});

  // Fails when the address is taken.
  Status Listen(const std::string& abstract_name);
  // The same with a socket that listens already and does not block.
  void Serve(UniqueFd listener);
  // Nobody comes from now on.
  void Close();

  // Takes in the clients that wait now, without waiting for the io_context.
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
