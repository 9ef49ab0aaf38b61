// Which host this is, whatever it is called: two agents that say the same run on one host and can
// be one.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct IdentityFacts {
  std::string boot_id;                  // of the kernel since it was started
  std::vector<std::string> namespaces;  // network, processes, IPC; as /proc/self/ns says them
  std::string host_name;
  std::vector<std::string> addresses;  // IPv4, without loopback: copies of one virtual machine may
                                       // share all of the above
  uint32_t user = 0;
};

// Empty when a fact is missing that tells hosts apart. Pure.
std::string IdentityText(IdentityFacts facts);

// Of the calling process.
std::string HostIdentity();

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_HOST_IDENTITY_H_
