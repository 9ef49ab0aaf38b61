// Which of several departures was the first cause of a failure, and not the consequence of another
// one. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_FIRST_CAUSE_H_
#define HVD_LAUNCHER_JOB_REPORT_FIRST_CAUSE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/job/host_records/host_clock.h"

namespace hvd {

// A rank left the others, or was lost, and failed.
struct Departure {
  uint32_t rank = 0, host = 0;
  int64_t stamp_ns = 0;  // by the clock of its host
  // Before it left, it had failed because of others, or the job had asked it to end.
  bool is_consequence = false;
  bool by_signal = false;
};

// The rank to name; nothing if there are no departures. `clocks` by host.
//
// A departure that is known to be a consequence is named only if there is nothing else, whatever a
// clock says. Of the rest the earliest is named. Departures of one host are compared by its clock,
// exactly; those of different hosts only as far as their clocks are known. Of those that may all
// have been the first, one that was ended by a signal is named before one that exited: a peer's
// loss makes a rank exit, and signals nobody.
std::optional<uint32_t> FirstCause(const std::vector<Departure>& departures,
                                   const std::vector<HostClock>& clocks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_FIRST_CAUSE_H_
