// Detects the death of a rank in under a millisecond, whatever the size of the process.
//
// A worker's runtime thread holds a robust futex in its block of the job page (AliveMark). If the
// thread ends without releasing it, for whatever reason, the kernel marks the word and wakes the
// agent (DeathWatch). The pid is reaped later (the kernel frees the memory first), and only that
// proves that the process can no longer write.
#ifndef HVD_RUNTIME_SEGMENT_ALIVE_H_
#define HVD_RUNTIME_SEGMENT_ALIVE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// Worker side. Construct, Hold and Release on the same thread, which must use no robust pthread
// mutex of its own.
class AliveMark {
 public:
  AliveMark();
  ~AliveMark();
  AliveMark(const AliveMark&) = delete;

  // Acquires the word, which must outlive the hold. At most one word is held at a time.
  Status Hold(std::atomic<uint32_t>& word);
  // Leaves cleanly: the watcher sees no death. No-op if nothing is held.
  void Release();

 private:
  struct List;  // the kernel's robust_list_head and its one entry
  std::unique_ptr<List> list_;
  std::atomic<uint32_t>* word_ = nullptr;
};

// The state of a word; kDamaged: written neither by a holder nor by the kernel. Pure.
enum class AliveWord { kFree, kHeld, kDied, kDamaged };
AliveWord ReadAliveWord(uint32_t word);

// Agent side: a thread (one per 127 ranks) that calls `on_death(local rank)`, at most once per
// rank, within a millisecond of the holder's end. Any process of the job may overwrite the page by
// mistake: a kDamaged word is reported by `on_damage(local rank)` instead, within 100 ms. Both run
// on the watching thread. The page's memory must outlive the watch.
class DeathWatch {
 public:
  DeathWatch(JobPage page, std::function<void(uint32_t)> on_death,
             std::function<void(uint32_t)> on_damage = {});
  ~DeathWatch();  // stops and joins
  DeathWatch(const DeathWatch&) = delete;

 private:
  void Run(uint32_t first, uint32_t count);

  JobPage page_;
  std::function<void(uint32_t)> on_death_, on_damage_;
  std::atomic<uint32_t> stop_{0};
  std::vector<std::thread> threads_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_ALIVE_H_
