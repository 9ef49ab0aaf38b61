// RelaySocket: one end of a relayed connection: a TCP connection to a rank of this host. Reads only
// within the other host's credit, and buffers at most kRelayWindow bytes that the rank has not
// accepted.
//
// One thread, that of the io_context. Handlers run from there, never from a call of this class, and
// not after Close.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKET_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKET_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/wire/messages.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

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

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SOCKET_H_
