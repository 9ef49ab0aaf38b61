// ViewClient: the end of a ViewServer in hvdrun top and hvdrun dump.
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
  // kAskStacks, kAskNative). A sentence where it cannot, for instance because the job runs on
  // another machine.
  static Result<ViewClient> Ask(const std::string& job_id, std::string_view wish);

  int socket() const { return socket_.get(); }

  // Waits until bytes are there or `limit` is over, reads them and keeps them. kAborted: the driver
  // has closed; kInProgress: nothing came in time.
  Status Receive(Duration limit);
  // The next whole line that was received, without its end; false: there is none yet.
  bool TakeLine(std::string* line);
  // The same of exactly `bytes`.
  bool TakeBytes(size_t bytes, std::string* taken);

 private:
  explicit ViewClient(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  std::string received_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_CLIENT_H_
