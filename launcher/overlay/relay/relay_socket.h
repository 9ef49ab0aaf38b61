// RelaySocket: the end of a relayed connection on a host: a TCP connection to a rank of it. Reads
// only as far as the other host gave credit, and keeps what the rank does not take yet, at most
// kRelayWindow bytes.
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
    std::function<void()> on_end;  // once: the rank closed, or is gone
  };

  // `socket` is connected and does not block. Nothing is read before Start.
  RelaySocket(asio::io_context& io, UniqueFd socket, Handlers handlers);
  RelaySocket(const RelaySocket&) = delete;

  void Start();
  // So many bytes of the credit are used already.
  void Spend(uint64_t bytes) { credit_ -= bytes; }
  // So many more bytes may be read.
  void Allow(uint64_t bytes);
  // False when that is more than the other host may send.
  bool Write(std::string_view bytes);
  // Closes once the rank has taken what was written.
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
