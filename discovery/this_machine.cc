#include "discovery/this_machine.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "discovery/words.h"
#include "runtime/base/cpu_quota.h"
#include "runtime/base/env.h"
#include "runtime/base/test_env.h"

namespace hvd {
namespace {

using Bytes = std::string;  // an address, without port and scope

Bytes AddressBytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return Bytes(reinterpret_cast<const char*>(&v4), sizeof v4);
  }
  if (address->sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return Bytes(reinterpret_cast<const char*>(&v6), sizeof v6);
  }
  return "";
}

bool IsLoopback(const Bytes& address) {
  in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
  if (address.size() == sizeof(in_addr)) return address[0] == 127;
  return address == Bytes(reinterpret_cast<const char*>(&loopback), sizeof loopback);
}

std::vector<Bytes> OwnAddresses() {
  std::vector<Bytes> own;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return own;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (Bytes bytes = AddressBytes(i->ifa_addr); !bytes.empty()) own.push_back(bytes);
  }
  ::freeifaddrs(list);
  return own;
}

std::vector<Bytes> Resolve(const std::string& name) {
  std::vector<Bytes> found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return found;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    if (Bytes bytes = AddressBytes(i->ai_addr); !bytes.empty()) found.push_back(bytes);
  }
  ::freeaddrinfo(list);
  return found;
}

// nvidia0, nvidia1, ...: one per device.
bool IsGpuNode(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  name.remove_prefix(kPrefix.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

uint32_t CountCores() {
  cpu_set_t allowed;
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const uint32_t cores = known ? static_cast<uint32_t>(CPU_COUNT(&allowed)) : OnlineCpus();
  return UsableCpus(cores, OwnCpuQuota());
}

}  // namespace

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

bool IsThisMachine(const std::string& name) {
  if (name == "localhost" || name == HostName()) return true;
  std::vector<Bytes> addresses = Resolve(name);
  if (addresses.empty()) return false;
  std::vector<Bytes> own = OwnAddresses();
  return std::all_of(addresses.begin(), addresses.end(), [&](const Bytes& address) {
    return IsLoopback(address) || std::find(own.begin(), own.end(), address) != own.end();
  });
}

uint32_t CountGpus(const std::string& folder, const std::optional<std::string>& visible) {
  std::unique_ptr<DIR, int (*)(DIR*)> nodes(::opendir(folder.c_str()), ::closedir);
  if (!nodes) return 0;
  uint32_t count = 0;
  while (const dirent* entry = ::readdir(nodes.get())) {
    if (IsGpuNode(entry->d_name)) ++count;
  }
  return visible ? std::min(count, static_cast<uint32_t>(ListedGpus(*visible).size())) : count;
}

// "0,1", "GPU-8f2..,MIG-7a..".
std::vector<std::string> ListedGpus(std::string_view visible) {
  std::vector<std::string> listed;
  while (true) {
    const size_t comma = std::min(visible.find(','), visible.size());
    const std::string_view entry = Trimmed(visible.substr(0, comma));
    if (entry.empty() || entry.front() == '-') return listed;
    listed.emplace_back(entry);
    if (comma == visible.size()) return listed;
    visible.remove_prefix(comma + 1);
  }
}

uint32_t OnlineCpus() {
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  return cpus > 0 ? static_cast<uint32_t>(cpus) : 1;
}

uint32_t GpuSlots() {
  // Tests provide their own GPUs.
  return CountGpus(GetTestEnv("HVD_TEST_DEV").value_or("/dev"), GetEnv("CUDA_VISIBLE_DEVICES"));
}

uint32_t CoreSlots() { return CountCores(); }

uint32_t DefaultSlots() {
  const uint32_t gpus = GpuSlots();
  return gpus > 0 ? gpus : CoreSlots();
}

}  // namespace hvd
