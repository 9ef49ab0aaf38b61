#include "launcher/external/mpi/launcher_run.h"

#include <utility>

namespace hvd {

LauncherRun::LauncherRun(asio::io_context& io, std::vector<std::string> command,
                         std::shared_ptr<LocalFamily> family, OnOver on_over)
    : command_(std::move(command)),
      on_over_(std::move(on_over)),
      channel_(
          io, command_,
          [this](const CommandEnd& end) {
            end_ = ReadLauncherEnd(end);
            return ChannelEnd{};
          },
          std::move(family)) {}

void LauncherRun::End(bool silent) {
  if (over_) return;
  silent ? channel_.Kill() : channel_.Close();
}

// A reason of the channel's own: it could not be started.
void LauncherRun::OnEnd(const ChannelEnd& end) {
  over_ = true;
  if (end_.reason.empty()) end_ = {"could not be started", end.reason, 1};
  on_over_(end_);
}

}  // namespace hvd
