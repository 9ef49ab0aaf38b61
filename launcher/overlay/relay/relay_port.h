// RelayPort: stands in for an unreachable rank: a listener on 127.0.0.1 for one generation. A
// connection is passed to the owner after a mesh hello to that rank that proves the job's key; one
// that sends anything else, or nothing for 10 s, is closed silently.
//
// One thread, that of the io_context, which also calls the owner.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PORT_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PORT_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {

class RelayPort {
 public:
  // `hello`: the bytes already read.
  using OnConnection = std::function<void(UniqueFd socket, std::string hello)>;

  // `expected`: key, generation and target rank.
  static Result<std::unique_ptr<RelayPort>> Open(asio::io_context& io, MeshIdentity expected,
                                                 OnConnection on_connection);
  // Also closes connections that have not proven the key.
  ~RelayPort();
  RelayPort(const RelayPort&) = delete;

  // "127.0.0.1:4711"
  std::string endpoint() const;

 private:
  class Guests;

  explicit RelayPort(std::shared_ptr<Guests> guests) : guests_(std::move(guests)) {}

  std::shared_ptr<Guests> guests_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PORT_H_
