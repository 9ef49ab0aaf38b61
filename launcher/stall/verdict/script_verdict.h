// The verdict about ranks whose script uses collectives of another library than ours: whether they
// wait for a rank that does something else, and what that is. Pure: the observations of the agents
// are an argument, and their times are in them.
//
// A hang is said only where no rank of the job has moved for the warning time, by the kernel's
// count: the main thread of each has slept without waking up, is stopped, or spins in a collective;
// and of what a missing rank does nothing is work. All else is a notice.
#ifndef HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_
#define HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/stall/verdict/verdict.h"
#include "launcher/wire/rank_facts.h"

namespace hvd {

// A rank of the job, as far as it is known.
struct ScriptRank {
  uint32_t rank = 0;
  std::string host;
  bool left = false;                      // its process has ended successfully
  std::optional<ScriptObservation> seen;  // nothing: it moves, or its agent has not spoken yet
};

struct ScriptVerdict {
  enum class Kind : uint8_t {
    kMoves,    // a rank moves, or none waits for others
    kUnclear,  // nothing can be said yet
    kNotice,
    kHang
  };
  Kind kind = Kind::kMoves;
  std::string key;  // of kNotice and kHang: the same for the same situation
  int64_t waited_ms = 0;
  Verdict verdict;
};

// It is said to the user (is_new), or ends the job.
struct ScriptStall {
  Verdict verdict;
  bool is_new = true, ends = false;
};

// What a missing rank does.
enum class ScriptClass {
  kLeft,     // its process has ended
  kStopped,  // by a signal or a debugger
  kSleeps,   // time.sleep() and the like
  kLock,     // it waits for a thread or a process to release one
  kFile,     // in a read or write that moves nothing
  kWaits,    // in a collective at another line
  kBusy,     // it, or a process that it has started, computes
  kMoves,    // or reads and writes
  kPolls,    // it sleeps and looks again
  kDisk,     // it waits for a disk to have written
  kNetwork,  // for data from a socket or a pipe
  kChild,    // for a process that it has started
  kUnknown,  // its stacks cannot be read, or the system call tells nothing
};
ScriptClass ScriptClassOf(const ScriptRank& rank, int64_t warning_ms);
// A rank that does this may go on by itself.
bool MayBeWork(ScriptClass found);

ScriptVerdict ExplainScript(const std::vector<ScriptRank>& ranks, int64_t warning_ms);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_
