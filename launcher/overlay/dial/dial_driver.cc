#include "launcher/overlay/dial/dial_driver.h"

#include <fcntl.h>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <optional>
#include <utility>

#include "launcher/overlay/dial/connector_loop.h"
#include "launcher/process/jobs/job_id.h"

namespace hvd {
namespace {

// The one connection of this process.
class Dialing final : private MeshConnectorOwner {
 public:
  Dialing(const MeshConnectorOptions& options, const Clock& clock)
      : limit_(options.connect_timeout), loop_(io_, clock, options, {}, *this) {}

  Result<SealedLine> Dial(const MeshRecord& door) {
    loop_.Dial(kDriverPeer, Reachable(door, ThisMachine()));
    // The connector gives up by itself; this limit is a safeguard.
    io_.run_for(2 * limit_);
    loop_.Close();
    if (!why_.ok()) return why_;
    if (!line_) return Aborted("no answer came");
    return std::move(*line_);
  }

 private:
  void Connected(uint32_t, UniqueFd socket, const MeshGreeting& greeting) override {
    line_ = LineOf(std::move(socket), greeting.keys, greeting.incoming);
    io_.stop();
  }
  void Unreachable(uint32_t, Status why) override {
    why_ = std::move(why);
    io_.stop();
  }

  const Duration limit_;
  asio::io_context io_{1};
  ConnectorLoop loop_;
  std::optional<SealedLine> line_;
  Status why_;
};

}  // namespace

Result<Invitation> ReadInvitation(int input, Duration limit) {
  asio::io_context io{1};
  asio::posix::stream_descriptor stdin_copy(io, ::fcntl(input, F_DUPFD_CLOEXEC, 0));
  std::string text;
  asio::error_code error = asio::error::timed_out;
  size_t line = 0;
  asio::async_read_until(stdin_copy, asio::dynamic_buffer(text, kMostInvitationBytes), '\n',
                         [&](const asio::error_code& why, size_t bytes) {
                           error = why;
                           line = bytes;
                         });
  io.run_for(limit);
  if (error == asio::error::timed_out) return Aborted("no invitation came on its stdin");
  if (error) return Aborted("its stdin ended without an invitation");
  return ParseInvitation(std::string_view(text).substr(0, line - 1));
}

Result<SealedLine> DialDriver(const Invitation& invitation, const std::string& agent_job_id,
                              Duration limit, const Clock& clock) {
  const std::optional<uint32_t> host = HostOfAgent(invitation.job_id, agent_job_id);
  if (!host) return InvalidArgument("the invitation is for another job");
  MeshConnectorOptions options;
  options.identity = {invitation.key, kDialGeneration, *host};
  options.connect_timeout = limit;
  options.handshake_timeout = limit;
  options.name = [](uint32_t) { return std::string("hvdrun"); };
  options.session_keys = true;
  return Dialing(options, clock).Dial(invitation.door);
}

}  // namespace hvd
