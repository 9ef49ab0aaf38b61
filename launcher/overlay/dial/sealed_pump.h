// SealedPump: a BytePump over a connection whose bytes go in sealed records (sealed_records.h): its
// owner sees and gives plain bytes. One thread, that of the io_context.
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

// A connection whose handshake is over, as one end of it sees it.
struct SealedLine {
  UniqueFd socket;
  std::string seals_with, opens_with;  // a key for each direction
};
SealedLine LineOf(UniqueFd socket, const MeshSessionKeys& keys, bool incoming);

class SealedPump final : public BytePath {
 public:
  // As in BytePump; a record that is not genuine is the end, too.
  SealedPump(asio::io_context& io, SealedLine line, BytePumpHandlers handlers);

  size_t Write(std::string_view bytes) override;
  // Nothing more is written; the other side sees the end.
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
  std::string sealed_;  // and not written yet
  std::string trouble_;
  bool wanted_ = false, finished_ = false;
  std::optional<BytePump> pump_;  // always
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_SEALED_PUMP_H_
