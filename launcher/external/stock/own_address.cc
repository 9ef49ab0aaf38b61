#include "launcher/external/stock/own_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {
namespace {

constexpr const char* kAnyPort = "9";  // nothing is sent there

// The source address that the kernel would choose.
std::string SourceFor(const sockaddr* target, socklen_t size) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), target, size) != 0) return "";
  sockaddr_in source{};
  socklen_t length = sizeof source;
  char text[INET_ADDRSTRLEN] = "";
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&source), &length) != 0) return "";
  return ::inet_ntop(AF_INET, &source.sin_addr, text, sizeof text) != nullptr ? text : "";
}

std::string SourceTowards(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), kAnyPort, &hints, &found) != 0 || found == nullptr) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  return SourceFor(found->ai_addr, found->ai_addrlen);
}

}  // namespace

std::string OwnAddressTowards(const std::string& host) { return SourceTowards(host, 0); }

std::string OwnAddressTowardsNumeric(const std::string& address) {
  return SourceTowards(address, AI_NUMERICHOST);
}

std::string InterfaceWith(const std::string& numeric_address) {
  constexpr const char* kLoopback = "lo";
  if (numeric_address.starts_with("127.")) return kLoopback;
  return InterfaceOf(numeric_address);
}

}  // namespace hvd
