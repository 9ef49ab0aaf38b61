// Compares the requests of several hosts for one operation, by the rules that engines use within a
// host (CompareDetails).
#ifndef HVD_RUNTIME_API_COMPARE_HOSTS_H_
#define HVD_RUNTIME_API_COMPARE_HOSTS_H_

#include <span>
#include <string_view>

#include "runtime/backends/hosts/coordination/coordinator.h"
#include "runtime/base/status.h"

namespace hvd {

Status CompareHosts(std::string_view name, std::span<const HostDetail> hosts);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_COMPARE_HOSTS_H_
