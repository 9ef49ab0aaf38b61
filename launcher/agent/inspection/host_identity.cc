#include "launcher/agent/inspection/host_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "discovery/this_machine.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Not the mount namespace: sshd may give every login one of its own (pam_namespace, a private
// /tmp).
constexpr const char* kNamespaces[] = {"net", "pid", "ipc"};

std::string ReadLink(const std::string& path) {
  char target[PATH_MAX] = {};
  return ::readlink(path.c_str(), target, sizeof target - 1) > 0 ? target : "";
}

std::vector<std::string> Ipv4Addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
      found.emplace_back(text);
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace

std::string IdentityText(IdentityFacts facts) {
  bool known =
      !facts.boot_id.empty() && !facts.namespaces.empty() &&
      std::find(facts.namespaces.begin(), facts.namespaces.end(), "") == facts.namespaces.end();
  if (!known) return "";
  std::sort(facts.addresses.begin(), facts.addresses.end());
  std::string text = facts.boot_id;
  for (const std::string& space : facts.namespaces) text += " " + space;
  text += Format(" {} user {}", facts.host_name, facts.user);
  for (const std::string& address : facts.addresses) text += " " + address;
  return text;
}

std::string HostIdentity() {
  IdentityFacts facts;
  facts.boot_id = ReadProcFile("sys/kernel/random/boot_id");
  facts.boot_id.resize(std::min(facts.boot_id.find('\n'), facts.boot_id.size()));
  for (const char* name : kNamespaces)
    facts.namespaces.push_back(ReadLink(std::string("/proc/self/ns/") + name));
  facts.host_name = HostName();
  facts.addresses = Ipv4Addresses();
  facts.user = ::geteuid();
  return IdentityText(std::move(facts));
}

}  // namespace hvd
