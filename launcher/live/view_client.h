// ViewClient: the client of ViewServer in hvdrun top and hvdrun dump.
#ifndef HVD_LAUNCHER_LIVE_VIEW_CLIENT_H_
#define HVD_LAUNCHER_LIVE_VIEW_CLIENT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class ViewClient {
 public:
  // Connects to the driver of the job and asks for its view or a dump (kAskTop, kAskDump,
  // kAskStacks, kAskNative). The error is one sentence, for instance if the job runs on another
  // machine.
  static Result<ViewClient> Ask(const std::string& job_id, std::string_view request);

  int socket() const { return socket_.get(); }

  // Waits up to `limit` for bytes and buffers them. kAborted: the driver closed the connection;
  // kInProgress: timeout.
  Status Receive(Duration limit);
  // Pops the next complete line, without its end; false: none yet.
  bool PopLine(std::string* line);
  // Pops exactly `bytes` bytes; false: not enough yet.
  bool PopBytes(size_t bytes, std::string* taken);

 private:
  explicit ViewClient(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  std::string received_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_CLIENT_H_
