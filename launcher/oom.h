// Whether the kernel killed for lack of memory: it counts such kills, per cgroup and for the whole machine, and tells
// nobody who they were. A SIGKILL of ours while a counter moved is called one.
#ifndef HVD_LAUNCHER_OOM_H_
#define HVD_LAUNCHER_OOM_H_

#include <cstdint>
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

// The number after "oom_kill " at the beginning of a line. Pure.
std::optional<uint64_t> OomKillsIn(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OOM_H_
