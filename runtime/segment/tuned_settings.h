// TunedSettings: engine settings that may change while a job runs. Part of the job page.
//
// The agent writes them, the ranks of the host read them when needed. Ranks need not see the same
// values: a value that must agree within an operation is sent in its announcement.
#ifndef HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_
#define HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_

#include <atomic>
#include <cstdint>

namespace hvd {

// Each is 0 if not chosen: the rank's own setting applies.
struct TunedSettings {
  std::atomic<uint32_t> chunk_kib;  // largest chunk of an allreduce in shared memory
  std::atomic<uint32_t> spins;      // polls of a wait before it yields, plus 1
  std::atomic<uint32_t> yields;     // yields of a wait before it sleeps, plus 1
  std::atomic<uint64_t> fusion;     // bytes fused into one message between hosts, plus 1
  std::atomic<uint32_t> stripes;    // connections to each other host, plus 1
};

// Decodes a setting stored as 0 if not chosen, otherwise as its value plus 1.
template <typename Number>
Number ChosenOr(const std::atomic<Number>& setting, Number otherwise) {
  const Number chosen = setting.load(std::memory_order_relaxed);
  return chosen == 0 ? otherwise : chosen - 1;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_
