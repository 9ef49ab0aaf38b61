// What this machine is called, and what it has.
#ifndef HVD_DISCOVERY_THIS_MACHINE_H_
#define HVD_DISCOVERY_THIS_MACHINE_H_

#include <cstdint>
#include <string>

namespace hvd {

std::string HostName();

// True for localhost, our own name, and every name or address that leads to one of our interfaces.
bool IsThisMachine(const std::string& name);

// One per GPU, else one per core that this process may use.
uint32_t DefaultSlots();

}  // namespace hvd

#endif  // HVD_DISCOVERY_THIS_MACHINE_H_
