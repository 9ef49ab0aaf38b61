// ResultStatus: the state of an operation, published by its leader to the other members on its
// host. In memory of the leader, after the release flags of its lease.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_STATUS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_STATUS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/shared_heap.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// Which ranks on other hosts an operation waits for, for stall reports. The threads of the leader
// write it, every member reads it.
class Awaited {
 public:
  // From the coordinator: these members have not announced the operation.
  void NotAnnounced(std::span<const uint32_t> ranks) { Write(ranks, /*at_work=*/false); }
  // All members have announced it; these leaders work on it with this host's.
  void AtWork(std::span<const uint32_t> leaders) { Write(leaders, /*at_work=*/true); }

  // "for ... to ...".
  std::string Text() const;
  // A few of them; `at_work`: they have announced it and are moving its data.
  std::vector<uint32_t> Ranks(bool* at_work) const;

 private:
  static constexpr uint32_t kKept = 8;

  void Write(std::span<const uint32_t> ranks, bool at_work);

  std::atomic<uint32_t> count_, at_work_;  // `count_` may be more than are kept
  std::atomic<uint32_t> ranks_[kKept];
};

enum class Phase : uint32_t {
  kSilent = 0,   // the leader has not started it
  kStarted = 1,  // `sum` is set; inputs are being read
  kDone = 2,     // `result` is set; inputs are no longer read
  kFailed = 3,   // `text` is set; inputs are no longer read
};

struct alignas(kCacheLine) ResultStatus {
  std::atomic<uint32_t>
      phase;       // Phase; stored by the leader with release, after the fields of that phase
  uint32_t code;   // hvd::Code of the failure
  uint32_t broke;  // the work with other hosts ended with it
  Location sum;    // where the members' inputs are combined, if they are
  Location result, text;
  uint64_t result_bytes, text_bytes;
  uint64_t table_bytes;   // numbers at the beginning of the result: see ReadResult
  uint32_t last_joined;   // world rank, of a join
  uint32_t participants;  // ranks whose inputs are in a sum

  // Chunks of `sum` claimed and finished, by any member.
  alignas(kCacheLine) std::atomic<uint64_t> claimed;
  std::atomic<uint64_t> finished;

  alignas(kCacheLine) Awaited awaited;

  Phase now() const { return static_cast<Phase>(phase.load(std::memory_order_acquire)); }
  void Enter(Phase next) { phase.store(static_cast<uint32_t>(next), std::memory_order_release); }
};

// After the ResultStatus, one per member: how many of its threads may have an unfinished chunk.
using WorkMark = std::atomic<uint8_t>;

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULT_STATUS_H_
