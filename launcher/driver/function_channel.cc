#include "launcher/driver/function_channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// False: fewer bytes arrived (errno; 0: the other end is closed).
bool ReadWhole(int fd, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = ::recv(fd, bytes, count, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

Status NoFunction(int fd) {
  if (errno == 0) return Aborted("the caller of horovod.run() has ended or was interrupted");
  return InvalidArgument(
      Format("--function-channel {}: no function came ({}); only horovod.run() uses this option",
             fd, std::strerror(errno)));
}

}  // namespace

Result<std::string> ReadFunction(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  uint64_t length = 0;
  if (!ReadWhole(fd, reinterpret_cast<char*>(&length), sizeof length)) return NoFunction(fd);
  if (length == 0 || length > kMostFunctionBytes) {
    return InvalidArgument(
        Format("the function of horovod.run() and its arguments have {} bytes, and at most {} are "
               "possible; let the function load large data itself",
               length, kMostFunctionBytes));
  }
  std::string function(length, '\0');
  if (!ReadWhole(fd, function.data(), function.size())) return NoFunction(fd);
  return function;
}

std::string FunctionPieceHead(uint32_t worker, uint32_t rank, uint32_t length) {
  ByteWriter head;
  head.Put(worker).Put(rank).Put(length);
  return head.Take();
}

FunctionChannel::FunctionChannel(asio::io_context& io, int fd,
                                 std::function<void(uint32_t, uint64_t)> on_passed,
                                 std::function<void()> on_caller_gone)
    : io_(io),
      socket_(io, fd),
      on_passed_(std::move(on_passed)),
      on_caller_gone_(std::move(on_caller_gone)),
      writer_(fd, [this](std::vector<OutputReceipt> receipts) {
        asio::post(io_, [this, receipts = std::move(receipts)] {
          for (const OutputReceipt& receipt : receipts) on_passed_(receipt.host, receipt.log_bytes);
        });
      }) {
  WatchCaller();
}

// The caller sends nothing more, so a readable socket means that it has ended.
void FunctionChannel::WatchCaller() {
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const asio::error_code& error) {
                       if (!error) on_caller_gone_();
                     });
}

void FunctionChannel::Pass(OutputReceipt receipt, uint32_t worker, uint32_t rank,
                           std::string_view bytes) {
  std::string piece = FunctionPieceHead(worker, rank, static_cast<uint32_t>(bytes.size()));
  writer_.Write(piece.append(bytes), receipt);
}

void FunctionChannel::Finish(std::chrono::milliseconds limit) {
  if (!writer_.FlushFor(limit)) writer_.GiveUp();
}

}  // namespace hvd
