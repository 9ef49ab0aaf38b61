// Whether the kernel killed for lack of memory: it counts such kills, per cgroup and for the whole
// machine, and tells nobody who they were. A SIGKILL of a rank just after a counter moved is called
// one.
#ifndef HVD_LAUNCHER_PROCESS_OOM_H_
#define HVD_LAUNCHER_PROCESS_OOM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// Finds the counter once, reads it on every call of Kills().
class OomCounters {
 public:
  OomCounters();

  // Processes that the kernel has killed for lack of memory, as far as it can be seen from here.
  uint64_t Kills() const;

 private:
  std::string cgroup_file_;  // memory.events or memory.oom_control; empty: neither is there
};

// Which of the counted kills may still be that of a rank. A stranger in the same cgroup may be
// killed, too, and that moves the counter for good; a rank's own kill is counted before the rank is
// seen to end, by seconds if it has much memory. So a kill is settled, and proves nothing any more,
// at the look after the one that saw it, unless a rank is dying then. Pure.
class OomBaseline {
 public:
  explicit OomBaseline(uint64_t kills) : settled_(kills), seen_(kills) {}

  // Now and then. `any_dying`: whether a rank is being ended right now; asked only when a kill is
  // to be settled.
  void Look(uint64_t kills, const std::function<bool()>& any_dying);
  // A rank was ended by a SIGKILL that was not ours: true when the kernel did it for lack of
  // memory. Takes one kill.
  bool Take(uint64_t kills);

 private:
  uint64_t settled_, seen_;
};

// The number after "oom_kill " at the beginning of a line. Pure.
std::optional<uint64_t> OomKillsIn(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_OOM_H_
