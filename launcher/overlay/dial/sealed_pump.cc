#include "launcher/overlay/dial/sealed_pump.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

namespace hvd {
namespace {

// Maximum written at once; the rest waits until the connection has accepted it.
constexpr size_t kMostAtOnce = 256 * 1024;

UniqueFd CopyOf(const UniqueFd& socket) {
  return UniqueFd(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

SealedLine LineOf(UniqueFd socket, const MeshSessionKeys& keys, bool incoming) {
  return {std::move(socket), incoming ? keys.from_responder : keys.from_initiator,
          incoming ? keys.from_initiator : keys.from_responder};
}

SealedPump::SealedPump(asio::io_context& io, SealedLine line, BytePumpHandlers handlers)
    : handlers_(std::move(handlers)),
      sealer_(line.seals_with),
      opener_(line.opens_with),
      socket_(line.socket.get()) {
  UniqueFd read_end = CopyOf(line.socket);
  pump_.emplace(io, std::move(read_end), std::move(line.socket),
                BytePumpHandlers{[this](std::string_view records) { Receive(records); },
                                 [this] { OnWritable(); }, [this] { handlers_.on_end(); }});
}

size_t SealedPump::Write(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && sealed_.empty()) {
    if (finished_) return bytes.size();
    const std::string_view piece = bytes.substr(taken, kMostAtOnce);
    if (Status sealed = sealer_.Seal(piece, sealed_); !sealed.ok()) {
      GiveUp(sealed.message());
      return bytes.size();
    }
    taken += piece.size();
    Flush();
  }
  wanted_ = taken < bytes.size();
  return taken;
}

void SealedPump::Flush() { sealed_.erase(0, pump_->Write(sealed_)); }

void SealedPump::OnWritable() {
  Flush();
  if (sealed_.empty() && std::exchange(wanted_, false)) handlers_.on_writable();
}

// Closes the connection for both sides.
void SealedPump::GiveUp(const std::string& why) {
  trouble_ = why;
  sealed_.clear();
  finished_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

void SealedPump::FinishWriting() {
  if (!std::exchange(finished_, true)) ::shutdown(socket_, SHUT_WR);
}

void SealedPump::Close() {
  finished_ = true;
  sealed_.clear();
  pump_->Close();
}

void SealedPump::Receive(std::string_view records) {
  std::string plain;
  const Status opened = opener_.Open(records, plain);
  if (!plain.empty()) handlers_.on_bytes(plain);
  if (!opened.ok() && pump_->open()) GiveUp(opened.message());
}

}  // namespace hvd
