// The facts that an agent found out about one of its ranks, from outside the process: what the rank
// waits for, and what the kernel says it does. Plain values.
#ifndef HVD_LAUNCHER_WIRE_RANK_FACTS_H_
#define HVD_LAUNCHER_WIRE_RANK_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

// A thread of the rank that waits for a collective.
struct WaitFacts {
  uint64_t key = 0;  // of the collective, the same on all ranks (stall_board.h)
  uint64_t id = 0;   // of this rank's operation
  std::string name;
  int32_t set = 0;  // the process set
  int64_t waited_ms = 0;
  int64_t seen_ms = 0;    // so long ago the thread found last that it must go on waiting
  uint8_t submitted = 0;  // every rank has submitted it, it waits for data
  std::vector<uint32_t> awaited;
};

struct RankFacts {
  uint32_t rank = 0;
  int32_t pid = 0;
  uint8_t in_world = 0;      // it is in the generation: it has neither left nor been lost
  std::string state;         // of its main thread: "R", "S", "D", "T", "t", "Z"; empty: it is gone
  std::string blocked_in;    // the system call of its main thread; empty: none, or not known
  uint32_t cpu_percent = 0;  // of one core, by the whole process
  uint64_t submitted = 0;    // collectives so far
  std::string last;          // the one that it submitted last
  uint64_t finished = 0;     // collectives that had ended when a wait was noted last
  std::string last_finished;
  std::vector<WaitFacts> waits;
  uint8_t all_wait = 0;  // every thread that ever submitted waits, and what they submitted is known
  std::vector<uint64_t> pending;  // keys of what it has submitted and that has not ended
  std::string site;               // "file:line in function", where its main thread is
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_RANK_FACTS_H_
