// The local sockets of relayed connections (relay_end.h). One thread, that of the io_context.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKETS_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKETS_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/wire/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {

// RelaySocket: one end of a relayed connection: a TCP connection to a rank of this host. Reads only
// within the other host's credit, and buffers at most kRelayWindow bytes that the rank has not
// accepted.
//
// Handlers run from the io_context, never from a call of this class, and not after Close.
class RelaySocket final : public std::enable_shared_from_this<RelaySocket> {
 public:
  struct Handlers {
    std::function<void(std::string bytes)> on_bytes;  // at most kRelayPiece
    std::function<void(size_t bytes)> on_written;
    std::function<void()> on_end;  // called once: the rank closed the connection or died
  };

  // `socket` is connected and non-blocking. Reads nothing before Start.
  RelaySocket(asio::io_context& io, UniqueFd socket, Handlers handlers);
  RelaySocket(const RelaySocket&) = delete;

  void Start();
  // `bytes` of the credit are already used.
  void Spend(uint64_t bytes) { credit_ -= bytes; }
  // Adds credit for reading.
  void Allow(uint64_t bytes);
  // False if the other host exceeds its credit.
  bool Write(std::string_view bytes);
  // Closes after the rank has received all written bytes.
  void Finish();
  void Close();

 private:
  void WaitToRead();
  void Read();
  void TryToWrite();
  void End();

  asio::posix::stream_descriptor socket_;
  Handlers handlers_;
  uint64_t credit_ = kRelayWindow;
  std::string unwritten_;
  size_t written_ = 0;  // of unwritten_
  bool reading_ = false, waiting_to_write_ = false, finishing_ = false;
};

// RelayPort: stands in for an unreachable rank: a listener on 127.0.0.1 for one generation. A
// connection is passed to the owner after a mesh hello to that rank that proves the job's key; one
// that sends anything else, or nothing for 10 s, is closed silently.
// The owner is called from the io_context.
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

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKETS_H_
