// RelayPort: where ranks of this host find one that they cannot reach: a listener on 127.0.0.1, for
// as long as the generation. A connection is handed over once it began with a mesh hello to that
// rank that proves the job's key; a connection that sends something else, or nothing for 10 s, is
// closed without a word.
//
// One thread, that of the io_context; the owner hears of connections from there.
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
  // `hello`: the bytes that were read.
  using OnConnection = std::function<void(UniqueFd socket, std::string hello)>;

  // `expected`: the key, the generation and the rank that is meant.
  static Result<std::unique_ptr<RelayPort>> Open(asio::io_context& io, MeshIdentity expected,
                                                 OnConnection on_connection);
  // Connections without a proven key are closed, too.
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
