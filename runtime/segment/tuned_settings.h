// TunedSettings: settings of the engine that change while a job runs. A part of the job page.
//
// The agent writes them, the ranks of the host read them whenever they need one. No two ranks have
// to have the same: a value that ranks must agree about in one operation travels in its
// announcement.
#ifndef HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_
#define HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_

#include <atomic>
#include <cstdint>

namespace hvd {

// Each is 0 where nothing was chosen: then the rank's own setting counts.
struct TunedSettings {
  std::atomic<uint32_t> chunk_kib;  // largest chunk of an allreduce in shared memory
  std::atomic<uint32_t> spins;      // looks of a wait before it gives the core away, and 1 added
  std::atomic<uint32_t> yields;   // times a wait gives the core away before it sleeps, and 1 added
  std::atomic<uint64_t> fusion;   // bytes that travel together between hosts, and 1 added
  std::atomic<uint32_t> stripes;  // connections to each other host, and 1 added
};

// A setting that is 0 where nothing was chosen, and otherwise has 1 added.
template <typename Number>
Number ChosenOr(const std::atomic<Number>& setting, Number otherwise) {
  const Number chosen = setting.load(std::memory_order_relaxed);
  return chosen == 0 ? otherwise : chosen - 1;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_TUNED_SETTINGS_H_
