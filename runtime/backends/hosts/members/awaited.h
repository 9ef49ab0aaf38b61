// Awaited: which ranks on other hosts an operation waits for, for stall reports. Part of the
// ResultStatus: the threads of the leader write it, every member reads it.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_AWAITED_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_AWAITED_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hvd {

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

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_AWAITED_H_
