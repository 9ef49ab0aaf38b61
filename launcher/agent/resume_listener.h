// ResumeListener: where a driver comes back to an agent after their connection was lost. Listens at
// an abstract unix address. A client (`hvdrun agent --resume`, see side_command.h) hands over the
// two ends of a new connection, whose first bytes must be the key that the driver gave to the
// agent. Until then nothing changes for the agent, so strangers disturb nothing: clients of other
// users are refused, and a connection without the key is closed.
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

#include "launcher/links/link_listener.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// A connection of the driver that has shown the key. `client` is held as long as the connection is
// used: when it closes, the `--resume` process ends, too.
struct ReturnedStream {
  UniqueFd input, output, client;
};

class ResumeListener {
 public:
  using OnReturn = std::function<void(ReturnedStream)>;

  // `key`: not empty, the bytes that come first on a new connection.
  ResumeListener(asio::io_context& io, std::string key, OnReturn on_return);
  ~ResumeListener();

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
  const std::string key_;
  OnReturn on_return_;
  LinkListener listener_;
  std::list<ClientPtr> clients_;
};

// Where an agent may wait for its driver: an abstract unix address, random so that no other process
// can occupy it before.
std::string MakeListenerAddress();

// Hands over descriptors, as the client does.
Status SendStreamEnds(int socket, int input, int output);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_
