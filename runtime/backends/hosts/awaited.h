// Awaited: which ranks on other hosts an operation waits for, for whoever explains a stall. On the
// board: written by the threads of the leader, read by every member.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_AWAITED_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_AWAITED_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

namespace hvd {

class Awaited {
 public:
  // These members have not come, as the coordinator says.
  void ToCome(std::span<const uint32_t> ranks) { Write(ranks, /*crossing=*/false); }
  // All have come; these leaders work on it with ours.
  void ToInterHostComm(std::span<const uint32_t> leaders) { Write(leaders, /*crossing=*/true); }

  // "for ... to ...".
  std::string Text() const;

 private:
  static constexpr uint32_t kKept = 8;

  void Write(std::span<const uint32_t> ranks, bool executor);

  std::atomic<uint32_t> count_, executor_;  // `count_` may be more than are kept
  std::atomic<uint32_t> ranks_[kKept];
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_AWAITED_H_
