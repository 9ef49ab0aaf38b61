#include "launcher/live/external_views.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/live/view_server.h"
#include "launcher/process/proc_file.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

bool IsOwn(const std::string& id) {
  const Result<UniqueFd> socket = ConnectLinkIfAny(std::string(kViewAddress) + id);
  ucred peer{};
  socklen_t length = sizeof peer;
  return socket.ok() && socket->valid() &&
         ::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

// The id of a job of hvdrun has 16 digits.
bool IsExternalId(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string Listed(const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ", ") + id;
  return text;
}

}  // namespace

std::vector<std::string> ExternalViewsIn(std::string_view unix_sockets) {
  std::vector<std::string> ids;
  while (!unix_sockets.empty()) {
    const size_t end = std::min(unix_sockets.find('\n'), unix_sockets.size());
    const std::string_view line = unix_sockets.substr(0, end);
    unix_sockets.remove_prefix(std::min(end + 1, unix_sockets.size()));
    const size_t at = line.rfind(" @");
    if (at == std::string_view::npos || !line.substr(at + 2).starts_with(kViewAddress)) continue;
    const std::string id(line.substr(at + 2 + kViewAddress.size()));
    if (IsExternalId(id) && std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> ListExternalViews() {
  std::vector<std::string> ids = ExternalViewsIn(ReadProcFile("net/unix"));
  std::erase_if(ids, [](const std::string& id) { return !IsOwn(id); });
  return ids;
}

Result<std::string> FindView(const std::vector<JobHere>& jobs,
                             const std::vector<std::string>& external, std::string_view prefix) {
  std::vector<std::string> meant;
  for (const std::string& id : external) {
    if (id.starts_with(prefix)) meant.push_back(id);
  }
  const Result<const JobHere*> job = JobToLookAt(jobs, prefix);
  if (meant.empty()) return job.ok() ? Result<std::string>((*job)->id) : job.status();
  for (const JobHere& other : jobs) {
    if (!other.part && other.id.starts_with(prefix)) meant.push_back(other.id);
  }
  if (meant.size() == 1) return meant.front();
  return InvalidArgument("name one of your jobs: " + Listed(meant));
}

}  // namespace hvd
