// BytePump: moves bytes between two descriptors (often the same socket) and its owner, without
// blocking and without a buffer of its own. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_PROCESS_BYTE_PUMP_H_
#define HVD_LAUNCHER_PROCESS_BYTE_PUMP_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string_view>

#include "runtime/base/unique_fd.h"

namespace hvd {

struct BytePumpHandlers {
  std::function<void(std::string_view)> on_bytes;
  std::function<void()>
      on_writable;               // there is room again after a Write that did not accept everything
  std::function<void()> on_end;  // once: the other side closed, or reading failed
};

// A byte stream to and from a peer.
class BytePath {
 public:
  virtual ~BytePath() = default;
  // Accepts as many bytes as fit now and returns their number. If the other side has closed, drops
  // everything; on_end reports that.
  virtual size_t Write(std::string_view bytes) = 0;
  // Does not call on_end.
  virtual void Close() = 0;
};

class BytePump final : public BytePath {
 public:
  // `write_end` may be empty for reading only. Handlers run from the io_context, never from inside
  // a call of this class.
  BytePump(asio::io_context& io, UniqueFd read_end, UniqueFd write_end, BytePumpHandlers handlers);

  size_t Write(std::string_view bytes) override;
  // Closes both descriptors.
  void Close() override;
  bool open() const { return reader_.is_open(); }
  // In on_end: errno of the failed read; 0: the other side closed.
  int error() const { return error_; }

 private:
  void WaitToRead();
  void Read();

  asio::posix::stream_descriptor reader_, writer_;
  BytePumpHandlers handlers_;
  std::unique_ptr<char[]> buffer_;
  bool waiting_to_write_ = false;
  int error_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_BYTE_PUMP_H_
