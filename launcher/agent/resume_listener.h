// ResumeListener: where the driver comes back to an agent whose connection it has lost. Listens at
// an abstract unix address; who knocks (`hvdrun agent --resume`, see side_command.h) hands over the
// two ends of a new connection, and what speaks through that connection must begin with the key
// that the driver gave to the agent. Until then nothing changes for the agent, so strangers disturb
// nothing: other users are not heard at all, and who has no key finds the door closed again.
//
// One thread, that of the io_context; the owner is called from there, never from a call of this
// class.
#ifndef HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_
#define HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// A proven connection of the driver. `visitor` is held as long as the connection is used: its end
// tells the visiting process to end, too.
struct ReturnedStream {
  UniqueFd input, output, client;
};

class ResumeListener {
 public:
  using OnReturn = std::function<void(ReturnedStream)>;

  // `key`: not empty, the bytes that come first on a new connection.
  ResumeListener(asio::io_context& io, std::string key, OnReturn on_return);
  ~ResumeListener();

  Status Open(const std::string& abstract_name);

 private:
  struct Client;
  using ClientPtr = std::shared_ptr<Client>;

  void WaitToAccept();
  void AcceptAll();
  void WaitForEnds(const ClientPtr& client);
  void WaitForKey(const ClientPtr& client);
  void ReadKey(const ClientPtr& client);
  void Dismiss(const ClientPtr& client);

  asio::io_context& io_;
  const std::string key_;
  OnReturn on_return_;
  asio::posix::stream_descriptor listener_;
  std::list<ClientPtr> clients_;
};

// Where an agent may wait for its driver: an abstract unix address that nobody can occupy before,
// because it is random.
std::string MakeListenerAddress();

// What the visitor does: hands over descriptors.
Status SendStreamEnds(int socket, int input, int output);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_RESUME_LISTENER_H_
