// ResumeListener: accepts a driver that reconnects to its agent after their connection was lost.
// Listens at an abstract unix address. A client (`hvdrun agent --resume`, see side_command.h) hands
// over the two ends of a new connection, whose first bytes must be a key that the driver gave to
// the agent: its own, or that of the driver which takes over when it is gone. Until then nothing
// changes for the agent: clients of other users are refused, and a connection without a key is
// closed.
//
// One thread, that of the io_context; the owner is called from there, never from a call of this
// class.
#ifndef HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_
#define HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_

#include <asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "launcher/process/links/link_listener.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// A connection of the driver that has shown the key. `client` is held as long as the connection is
// used: when it closes, the `--resume` process ends, too.
struct ReturnedStream {
  UniqueFd input, output, client;
  bool of_successor = false;  // another driver than before
};

class ResumeListener {
 public:
  using OnReturn = std::function<void(ReturnedStream)>;

  ResumeListener(asio::io_context& io, OnReturn on_return);
  ~ResumeListener();

  // The first bytes of a new connection of the driver, and of the driver that takes over; empty:
  // refuse it. Both have the same length.
  void set_driver_key(std::string key) { driver_key_ = std::move(key); }
  void set_successor_key(std::string key) { successor_key_ = std::move(key); }

  Status Open(const std::string& abstract_name) { return listener_.Listen(abstract_name); }

 private:
  struct Client;
  using ClientPtr = std::shared_ptr<Client>;

  void Accept(LinkClient visitor);
  void WaitForEnds(const ClientPtr& client);
  void WaitForKey(const ClientPtr& client);
  void ReadKey(const ClientPtr& client);
  void Dismiss(const ClientPtr& client);

  asio::io_context& io_;
  std::string driver_key_, successor_key_;
  OnReturn on_return_;
  LinkListener listener_;
  std::list<ClientPtr> clients_;
};

// An abstract unix address at which an agent may wait for its driver; random, so that no other
// process can occupy it first.
std::string MakeListenerAddress();

// Sends the descriptors over the socket, as the client does.
Status SendStreamEnds(int socket, int input, int output);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_
