// SealedPump: a BytePump over an encrypted connection (sealed_records.h); its owner reads and
// writes plain bytes. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_OVERLAY_DIAL_SEALED_PUMP_H_
#define HVD_LAUNCHER_OVERLAY_DIAL_SEALED_PUMP_H_

#include <asio/io_context.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/process/byte_pump.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_handshake.h"
#include "runtime/net/sealed_records.h"

namespace hvd {

// One end of a connection after its handshake.
struct SealedLine {
  UniqueFd socket;
  std::string seals_with, opens_with;  // one key per direction
};
SealedLine LineOf(UniqueFd socket, const MeshSessionKeys& keys, bool incoming);

class SealedPump final : public BytePath {
 public:
  // As in BytePump; a forged or damaged record also ends the connection.
  SealedPump(asio::io_context& io, SealedLine line, BytePumpHandlers handlers);

  size_t Write(std::string_view bytes) override;
  // Half-closes: the other side reads end of file.
  void FinishWriting();
  void Close() override;
  // In on_end: why the connection was given up; empty: it was closed.
  const std::string& trouble() const { return trouble_; }

 private:
  void Receive(std::string_view records);
  void Flush();
  void OnWritable();
  void GiveUp(const std::string& why);

  BytePumpHandlers handlers_;
  RecordSealer sealer_;
  RecordOpener opener_;
  const int socket_;    // while the pump is open
  std::string sealed_;  // not written yet
  std::string trouble_;
  bool wanted_ = false, finished_ = false;
  std::optional<BytePump> pump_;  // never empty
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_SEALED_PUMP_H_
