#include "runtime/net/mesh/mesh_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/address_range.h"

namespace hvd {
namespace {

constexpr size_t kMaxEndpoints = 32;
constexpr int kBacklog = 512;

sockaddr_in& AsIpv4(MeshAddress& a) { return reinterpret_cast<sockaddr_in&>(a.storage); }
const sockaddr_in& AsIpv4(const MeshAddress& a) {
  return reinterpret_cast<const sockaddr_in&>(a.storage);
}
sockaddr_in6& AsIpv6(MeshAddress& a) { return reinterpret_cast<sockaddr_in6&>(a.storage); }
const sockaddr_in6& AsIpv6(const MeshAddress& a) {
  return reinterpret_cast<const sockaddr_in6&>(a.storage);
}

uint16_t PortOf(const MeshAddress& a) {
  return ntohs(a.family() == AF_INET ? AsIpv4(a).sin_port : AsIpv6(a).sin6_port);
}

void SetPort(MeshAddress& a, uint16_t port) {
  (a.family() == AF_INET ? AsIpv4(a).sin_port : AsIpv6(a).sin6_port) = htons(port);
}

// Addresses that mean the same host to every host that can reach them.
bool IsUsable(const MeshAddress& a) {
  if (a.family() == AF_INET) return (ntohl(AsIpv4(a).sin_addr.s_addr) >> 16) != 0xa9fe;
  return !IN6_IS_ADDR_LINKLOCAL(&AsIpv6(a).sin6_addr);
}

struct InterfaceAddress {
  std::string interface;
  MeshAddress address;
};

// Loopback comes last.
std::vector<InterfaceAddress> InterfaceAddresses() {
  ifaddrs* list = nullptr;
  std::vector<InterfaceAddress> found;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    MeshAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, i->ifa_addr, address.length);
    if (IsUsable(address)) found.push_back({i->ifa_name, address});
  }
  ::freeifaddrs(list);
  std::stable_partition(found.begin(), found.end(),
                        [](const InterfaceAddress& i) { return !i.address.IsLoopback(); });
  return found;
}

// 0, or the errno of the failure. `port` 0: any.
int ListenAt(MeshAddress address, uint16_t port, bool both_families, UniqueFd* socket) {
  SetPort(address, port);
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  int on = 1, only = both_families ? 0 : 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (::bind(fd.get(), address.get(), address.length) != 0) return errno;
  if (::listen(fd.get(), kBacklog) != 0) return errno;
  *socket = std::move(fd);
  return 0;
}

Result<uint16_t> BoundPort(const UniqueFd& socket) {
  MeshAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length)) {
    return SystemError("cannot read the port of a listening socket", errno);
  }
  return PortOf(bound);
}

// The address without its port, for messages.
std::string HostText(const MeshAddress& address) {
  std::string text = address.Text();
  return text.substr(0, text.rfind(':'));
}

// Without brackets.
std::string BareText(const MeshAddress& address) {
  std::string text = HostText(address);
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

Result<UniqueFd> ListenInRange(const MeshAddress& address, bool both_families,
                               const ListenHints& hints, uint32_t rank) {
  uint32_t ports = hints.last_port - hints.first_port + 1u;
  int error = 0;
  for (uint32_t i = 0; i < ports; ++i) {
    auto port = static_cast<uint16_t>(hints.first_port + (rank + i) % ports);
    UniqueFd socket;
    error = ListenAt(address, port, both_families, &socket);
    if (error == 0) return socket;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  std::string who = Format("rank {} cannot listen on {}", rank, HostText(address));
  if (error != EADDRINUSE && error != EACCES) return SystemError(who, error);
  std::string range = Format("{}-{}", hints.first_port, hints.last_port);
  return Aborted(who + " because none of the ports " + range +
                 " is free for it; allow a wider range of ports, or end what listens there");
}

Result<MeshListener> ListenEverywhere(const ListenHints& hints, uint32_t rank) {
  Result<MeshAddress> any = ParseMeshAddress("::", 0);
  Result<UniqueFd> socket = ListenInRange(*any, true, hints, rank);
  bool both = socket.ok();
  if (!both) {  // a kernel without IPv6
    any = ParseMeshAddress("0.0.0.0", 0);
    socket = ListenInRange(*any, false, hints, rank);
  }
  if (!socket.ok()) return socket.status();
  Result<uint16_t> port = BoundPort(*socket);
  if (!port.ok()) return port.status();
  MeshListener listener;
  for (auto& [interface, address] : InterfaceAddresses()) {
    if (address.family() == AF_INET6 && !both) continue;
    SetPort(address, *port);
    listener.record.endpoints.push_back(address.Text());
  }
  listener.sockets.push_back(std::move(*socket));
  return listener;
}

Result<MeshListener> ListenOn(const ListenHints& hints, uint32_t rank) {
  MeshListener listener;
  for (const std::string& numeric : hints.addresses) {
    Result<MeshAddress> address = ParseMeshAddress(numeric, 0);
    if (!address.ok()) return address.status();
    Result<UniqueFd> socket = ListenInRange(*address, false, hints, rank);
    if (!socket.ok()) return socket.status();
    Result<uint16_t> port = BoundPort(*socket);
    if (!port.ok()) return port.status();
    SetPort(*address, *port);
    listener.record.endpoints.push_back(address->Text());
    listener.sockets.push_back(std::move(*socket));
  }
  return listener;
}

}  // namespace

std::string MeshAddress::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &AsIpv4(*this).sin_addr, text, sizeof text);
    return Format("{}:{}", text, PortOf(*this));
  }
  ::inet_ntop(AF_INET6, &AsIpv6(*this).sin6_addr, text, sizeof text);
  return Format("[{}]:{}", text, PortOf(*this));
}

bool MeshAddress::IsLoopback() const {
  if (family() == AF_INET) return (ntohl(AsIpv4(*this).sin_addr.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&AsIpv6(*this).sin6_addr);
}

MeshAddress PeerAddress(int socket) {
  MeshAddress from;
  from.length = sizeof from.storage;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&from.storage), &from.length);
  if (from.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&AsIpv6(from).sin6_addr)) return from;
  MeshAddress ipv4;
  ipv4.length = sizeof(sockaddr_in);
  ipv4.storage.ss_family = AF_INET;
  const in6_addr& mapped = AsIpv6(from).sin6_addr;
  std::memcpy(&AsIpv4(ipv4).sin_addr, mapped.s6_addr + sizeof mapped - sizeof(in_addr),
              sizeof(in_addr));
  SetPort(ipv4, PortOf(from));
  return ipv4;
}

Result<MeshAddress> ParseMeshAddress(const std::string& numeric, uint16_t port) {
  MeshAddress address;
  if (::inet_pton(AF_INET, numeric.c_str(), &AsIpv4(address).sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.length = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, numeric.c_str(), &AsIpv6(address).sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.length = sizeof(sockaddr_in6);
  } else {
    return InvalidArgument("'" + numeric + "' is no numeric address");
  }
  SetPort(address, port);
  return address;
}

std::string InterfaceOf(const std::string& numeric_address) {
  const Result<MeshAddress> wanted = ParseMeshAddress(numeric_address, 0);
  if (!wanted.ok() || wanted->IsLoopback()) return "";
  for (const InterfaceAddress& i : InterfaceAddresses()) {
    if (HostText(i.address) == HostText(*wanted)) return i.interface;
  }
  return "";
}

Result<MeshAddress> ParseMeshEndpoint(std::string_view text) {
  size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto port = ParseWhole<uint16_t>(text.substr(std::min(colon, text.size() - 1) + 1));
  if (!port || *port == 0) return InvalidArgument("'" + std::string(text) + "' has no port");
  return ParseMeshAddress(std::string(host), *port);
}

std::string EncodeMeshRecord(const MeshRecord& record) {
  std::string text = record.machine;
  for (size_t i = 0; i < std::min(record.endpoints.size(), kMaxEndpoints); ++i) {
    text += " " + record.endpoints[i];
  }
  return text;
}

Result<MeshRecord> DecodeMeshRecord(std::string_view text) {
  MeshRecord record;
  size_t space = std::min(text.find(' '), text.size());
  record.machine = text.substr(0, space);
  while (space < text.size() && record.endpoints.size() < kMaxEndpoints) {
    size_t next = std::min(text.find(' ', space + 1), text.size());
    std::string endpoint(text.substr(space + 1, next - space - 1));
    if (Result<MeshAddress> good = ParseMeshEndpoint(endpoint); !good.ok()) return good.status();
    record.endpoints.push_back(std::move(endpoint));
    space = next;
  }
  if (record.machine.empty() || record.endpoints.empty()) {
    return InvalidArgument("a record without addresses");
  }
  return record;
}

std::vector<MeshAddress> Reachable(const MeshRecord& record, std::string_view machine) {
  std::vector<MeshAddress> loopback, others;
  for (const std::string& endpoint : record.endpoints) {
    Result<MeshAddress> address = ParseMeshEndpoint(endpoint);
    if (address.ok()) (address->IsLoopback() ? loopback : others).push_back(*address);
  }
  return record.machine == machine && !loopback.empty() ? loopback : others;
}

std::string ThisMachine() {
  std::string boot = "unknown";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) != 0) network.st_ino = 0;
  return Format("{}.{}", boot, network.st_ino);
}

Result<std::vector<std::string>> AddressesOfInterfaces(const std::vector<std::string>& names) {
  std::vector<InterfaceAddress> all = InterfaceAddresses();
  std::vector<std::string> addresses;
  for (const std::string& name : names) {
    AddressRange range;
    const bool by_range = LooksLikeRange(name);
    if (by_range) {
      Result<AddressRange> parsed = ParseAddressRange(name);
      if (!parsed.ok()) return parsed.status();
      range = *parsed;
    }
    size_t before = addresses.size();
    std::string known;  // what would have fitted
    for (const InterfaceAddress& i : all) {
      const std::string address = BareText(i.address);
      const std::string& shown = by_range ? address : i.interface;
      if (known.find(shown) == std::string::npos) known += (known.empty() ? "" : ", ") + shown;
      if (by_range ? Holds(range, address) : i.interface == name) addresses.push_back(address);
    }
    if (addresses.size() > before) continue;
    if (by_range) return InvalidArgument("no address of it is in " + name + "; it has " + known);
    return InvalidArgument("there is no network interface '" + name +
                           "' with an address; those with one are " + known);
  }
  return addresses;
}

Result<MeshListener> OpenMeshListener(const ListenHints& hints, uint32_t rank) {
  if (hints.last_port < hints.first_port) {
    return InvalidArgument(Format("the range of ports {}-{} ends before it begins",
                                  hints.first_port, hints.last_port));
  }
  Result<MeshListener> listener =
      hints.addresses.empty() ? ListenEverywhere(hints, rank) : ListenOn(hints, rank);
  if (!listener.ok()) return listener;
  if (listener->record.endpoints.empty()) {
    return Aborted(Format(
        "rank {} has no network interface with an address, so no other host can reach it", rank));
  }
  listener->record.machine = ThisMachine();
  return listener;
}

}  // namespace hvd
