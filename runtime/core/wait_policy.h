// How a thread waits for its peers: spins, then calls sched_yield(), then sleeps.
#ifndef HVD_RUNTIME_CORE_WAIT_POLICY_H_
#define HVD_RUNTIME_CORE_WAIT_POLICY_H_

#include <cstdint>

namespace hvd {

struct WaitPolicy {
  uint32_t spins = 0;   // polls before the first yield
  uint32_t yields = 0;  // yields before the first sleep
};

// For `ranks` on this host that may use `cores`. With fewer cores than ranks, spinning would take
// the core from the rank that is waited for.
constexpr WaitPolicy ChooseWaitPolicy(uint32_t ranks, uint32_t cores) {
  if (ranks <= cores) return {.spins = 400, .yields = 4};
  return {.spins = 0, .yields = 50};
}

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_WAIT_POLICY_H_
