// The identity of a host, independent of its name: agents with equal identities run on the same
// host and can be merged.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct IdentityFacts {
  std::string boot_id;                  // boot id of the kernel
  std::vector<std::string> namespaces;  // network, pid and IPC, as in /proc/self/ns
  std::string host_name;
  std::vector<std::string> addresses;  // IPv4, without loopback: copies of one virtual machine may
                                       // share all of the above
  uint32_t user = 0;
};

// Empty if a distinguishing fact is missing. Pure.
std::string IdentityText(IdentityFacts facts);

// The identity of this host for the calling process.
std::string HostIdentity();

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_
