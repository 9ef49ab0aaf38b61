#include "runtime/net/namespaces.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace hvd {
namespace {

std::string NamespacesOf(const std::string& process) {
  std::string all;
  for (const char* kind : {"user", "pid"}) {
    std::array<char, 64> name{};
    const std::string path = "/proc/" + process + "/ns/" + kind;
    const ssize_t length = ::readlink(path.c_str(), name.data(), name.size());
    if (!all.empty()) all += ' ';
    if (length > 0) all.append(name.data(), static_cast<size_t>(length));
  }
  return all;
}

}  // namespace

std::string OurNamespaces() { return NamespacesOf("self"); }

bool InOurNamespaces(int pid) {
  const std::string ours = OurNamespaces();
  return ours == " " || (pid > 0 && NamespacesOf(std::to_string(pid)) == ours);
}

Status CheckPeerNamespaces(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
      InOurNamespaces(peer.pid)) {
    return Status::Ok();
  }
  if (peer.pid > 0 && ::kill(peer.pid, 0) != 0 && errno == ESRCH) {
    return {Code::kInProgress, "the process that made the agent's address has ended"};
  }
  return Aborted(
      "the process at the agent's address is in another container than this one (another user or "
      "process namespace); not talking to it");
}

}  // namespace hvd
