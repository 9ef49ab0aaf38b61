// Detects kills by the kernel's OOM killer: the kernel counts them per cgroup and machine, but does
// not name the victims. A SIGKILL of a rank right after a counter increased is attributed to it.
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

  // Number of OOM kills visible from here.
  uint64_t Kills() const;

 private:
  std::string cgroup_file_;  // memory.events or memory.oom_control; empty: neither exists
};

// Tracks which counted kills may still belong to a rank. Other processes in the same cgroup may be
// killed, too; and a rank's kill is counted before its end is noticed, by seconds if it has much
// memory. So a kill expires at the second call of Look after it, unless a rank is dying then. Pure.
class OomBaseline {
 public:
  explicit OomBaseline(uint64_t kills) : settled_(kills), seen_(kills) {}

  // Call periodically. `any_dying`: whether a rank is dying right now; called only if a kill is to
  // expire.
  void Look(uint64_t kills, const std::function<bool()>& any_dying);
  // For a rank that ended by a SIGKILL not sent by hvdrun: true if it was an OOM kill. Consumes one
  // kill.
  bool CountKill(uint64_t kills);

 private:
  uint64_t settled_, seen_;
};

// The number after "oom_kill " at the beginning of a line. Pure.
std::optional<uint64_t> OomKillsIn(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_OOM_H_
