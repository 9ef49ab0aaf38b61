// How a thread waits for its peers: first looking again and again, then giving the core away, then
// sleeping.
#ifndef HVD_RUNTIME_CORE_WAIT_POLICY_H_
#define HVD_RUNTIME_CORE_WAIT_POLICY_H_

#include <cstdint>

namespace hvd {

struct WaitPolicy {
  uint32_t spins = 0;   // looks before the first yield
  uint32_t yields = 0;  // yields before the first sleep
};

// For `ranks` of this host on `cores` that they may use. With fewer cores than ranks spinning takes
// the core from the very rank that is waited for.
constexpr WaitPolicy ChooseWaitPolicy(uint32_t ranks, uint32_t cores) {
  if (ranks <= cores) return {.spins = 400, .yields = 4};
  return {.spins = 0, .yields = 50};
}

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_WAIT_POLICY_H_
