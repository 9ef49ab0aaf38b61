// The verdict about ranks whose script uses another library's collectives: whether they wait for a
// rank that does something else, and what that is. Pure: the agents' observations, with their
// times, are an argument.
//
// It is a hang only if, by the kernel's counters, no rank has moved for the warning time: the main
// thread of each has slept without waking up, is stopped, or spins in a collective; and nothing
// that a missing rank does may be work. Anything else is a notice.
#ifndef HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_
#define HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/stall/verdict/verdict.h"
#include "launcher/wire/rank_facts.h"

namespace hvd {

// What is known about a rank of the job.
struct ScriptRank {
  uint32_t rank = 0;
  std::string host;
  bool left = false;                      // its process exited with 0
  std::optional<ScriptObservation> seen;  // nothing: it moves, or its agent has not reported yet
};

struct ScriptVerdict {
  enum class Kind : uint8_t {
    kMoves,    // a rank moves, or none waits for others
    kUnclear,  // not enough data yet
    kNotice,
    kHang
  };
  Kind kind = Kind::kMoves;
  std::string key;  // of kNotice and kHang: identifies the situation
  int64_t waited_ms = 0;
  Verdict verdict;
};

// A verdict to report to the user (is_new), or that ends the job.
struct ScriptStall {
  Verdict verdict;
  bool is_new = true, ends = false;
};

// The activity of a missing rank.
enum class ScriptClass {
  kLeft,     // its process has ended
  kStopped,  // by a signal or a debugger
  kSleeps,   // time.sleep() and the like
  kLock,     // it waits for a lock of a thread or process
  kFile,     // in a file read or write that transfers nothing
  kWaits,    // in a collective at another line
  kBusy,     // it or a child process computes
  kMoves,    // it reads or writes
  kPolls,    // it alternates between sleeping and polling
  kDisk,     // it waits for disk I/O
  kNetwork,  // it waits for data from a socket or a pipe
  kChild,    // it waits for a child process
  kUnknown,  // its stacks cannot be read, or the system call is inconclusive
};
ScriptClass ScriptClassOf(const ScriptRank& rank, int64_t warning_ms);
// A rank in this state may continue without help.
bool MayBeWork(ScriptClass found);

ScriptVerdict ExplainScript(const std::vector<ScriptRank>& ranks, int64_t warning_ms);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_SCRIPT_VERDICT_H_
