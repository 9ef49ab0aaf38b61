#include "launcher/live/view_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/live/view_server.h"
#include "runtime/net/link.h"

namespace hvd {

Result<ViewClient> ViewClient::Ask(const std::string& job_id, std::string_view request) {
  Result<UniqueFd> socket = ConnectLinkIfAny(std::string(kViewAddress) + job_id);
  if (!socket.ok()) return socket.status();
  if (!socket->valid())
    return Aborted("the hvdrun of job " + job_id + " does not answer; it may be about to end");
  if (::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return Aborted("the hvdrun of job " + job_id + " takes no questions");
  return ViewClient(std::move(*socket));
}

Status ViewClient::Receive(Duration limit) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  pollfd entry{socket_.get(), POLLIN, 0};
  const int ready =
      ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(milliseconds, 0, 1 << 30)));
  if (ready <= 0) return Status(Code::kInProgress, "nothing came in time");
  const size_t before = received_.size();
  received_.resize(before + kViewPacket);
  const ssize_t got = ::recv(socket_.get(), received_.data() + before, kViewPacket, MSG_DONTWAIT);
  received_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0) return Status::Ok();
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return Status(Code::kInProgress, "nothing came in time");
  return Aborted("hvdrun has closed the connection");
}

bool ViewClient::PopLine(std::string* line) {
  const size_t end = received_.find('\n');
  if (end == std::string::npos) return false;
  *line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

bool ViewClient::PopBytes(size_t bytes, std::string* taken) {
  if (received_.size() < bytes) return false;
  *taken = received_.substr(0, bytes);
  received_.erase(0, bytes);
  return true;
}

}  // namespace hvd
