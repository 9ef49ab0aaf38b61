#include "launcher/process/byte_pump.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace hvd {
namespace {

constexpr size_t kPumpBytes = 256 * 1024;

}  // namespace

BytePump::BytePump(asio::io_context& io, UniqueFd read_end, UniqueFd write_end,
                   BytePumpHandlers handlers)
    : reader_(io, read_end.Release()),
      writer_(io),
      handlers_(std::move(handlers)),
      buffer_(std::make_unique_for_overwrite<char[]>(kPumpBytes)) {
  reader_.native_non_blocking(true);
  if (write_end.valid()) {
    writer_.assign(write_end.Release());
    writer_.native_non_blocking(true);
  }
  WaitToRead();
}

void BytePump::WaitToRead() {
  reader_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const asio::error_code& error) {
                       if (!error) Read();
                     });
}

void BytePump::Read() {
  ssize_t got = ::read(reader_.native_handle(), buffer_.get(), kPumpBytes);
  if (got > 0) {
    handlers_.on_bytes({buffer_.get(), static_cast<size_t>(got)});
    if (open()) WaitToRead();
  } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    WaitToRead();
  } else {
    error_ = got < 0 ? errno : 0;
    handlers_.on_end();
  }
}

size_t BytePump::Write(std::string_view bytes) {
  if (!writer_.is_open()) return bytes.size();
  size_t written = 0;
  while (written < bytes.size() && !waiting_to_write_) {
    ssize_t n = ::write(writer_.native_handle(), bytes.data() + written, bytes.size() - written);
    if (n >= 0) {
      written += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      waiting_to_write_ = true;
      writer_.async_wait(asio::posix::stream_descriptor::wait_write,
                         [this](const asio::error_code& error) {
                           if (error) return;  // closed, and perhaps gone
                           waiting_to_write_ = false;
                           handlers_.on_writable();
                         });
    } else if (errno != EINTR) {
      return bytes.size();
    }
  }
  return written;
}

void BytePump::Close() {
  reader_.close();
  writer_.close();
}

}  // namespace hvd
