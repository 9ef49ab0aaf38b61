// StallBoard: the facts that a rank lets its agent know about its waits, so that a stall can be
// explained from outside. A part of the rank's block in the job page: written by the rank's
// threads, one at a time, and read by the agent. SEGMENT.md has the rules.
//
// A wait is noted once it has lasted as long as a sleep of the engine, so a collective that ends in
// time costs nothing here.
#ifndef HVD_RUNTIME_SEGMENT_STALL_BOARD_H_
#define HVD_RUNTIME_SEGMENT_STALL_BOARD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// A thread that waits for an operation. `version` is odd while the rest changes.
struct alignas(64) WaitRecord {
  std::atomic<uint64_t> version;
  std::atomic<uint64_t> key;        // of the operation, the same on all ranks
  std::atomic<uint64_t> id;         // of the operation, never used twice by a process; 0: no wait
  std::atomic<int64_t> since_ns;    // steady clock of the host, as the next
  std::atomic<int64_t> seen_ns;     // when the thread last found that it must go on waiting
  std::atomic<uint32_t> thread;     // its id, as the kernel counts
  std::atomic<int32_t> set;         // the process set
  std::atomic<uint32_t> submitted;  // 1: every rank has submitted the operation, it waits for data
  std::atomic<uint32_t> awaited_count;  // may be more than are kept
  std::atomic<uint32_t> awaited[16];    // world ranks
  char name[128];                       // cut and zero-terminated
};

struct alignas(64) StallBoard {
  std::atomic<uint64_t> warning_ms;   // of the rank's stall check; 0: none
  std::atomic<uint64_t> shutdown_ms;  // 0: none
  // Where a handler of the rank writes the Python stacks of all threads when the signal comes; 0:
  // there is none.
  std::atomic<uint32_t> stack_signal;
  std::atomic<uint32_t> stack_fd;
  // Threads that have submitted an operation. `submitters` may be more than are kept.
  std::atomic<uint32_t> submitters;
  std::atomic<uint32_t> submitter[8];
  // The operation that ended last, when a wait was noted last, and how many had ended by then.
  std::atomic<uint64_t> finished;
  char finished_name[64];
  // The keys of the operations that the rank had submitted then and that had not ended; may be more
  // than are kept.
  std::atomic<uint32_t> pending;
  std::atomic<uint64_t> pending_key[64];
  WaitRecord waits[4];
};

// A wait as its thread notes it.
struct WaitNote {
  uint64_t key = 0, id = 0;
  int64_t since_ns = 0, seen_ns = 0;
  uint32_t thread = 0;
  int32_t set = 0;
  bool submitted = false;
  std::span<const uint32_t> awaited;
  std::string_view name;
};

// A wait as the agent reads it.
struct OverdueWait {
  uint64_t key = 0, id = 0;
  int64_t since_ns = 0, seen_ns = 0;
  uint32_t thread = 0;
  int32_t set = 0;
  bool submitted = false;
  std::vector<uint32_t> awaited;
  std::string name;  // any bytes: the rank may have written what it should not
};

// ---- the rank's side: one thread at a time

// In the record of the thread, or a free one; lost when other threads have them all.
void NoteWait(StallBoard& board, const WaitNote& note);
// The thread does not wait for an operation any more.
void EndWait(StallBoard& board, uint32_t thread);
void NoteSubmitter(StallBoard& board, uint32_t thread);
void NoteFinished(StallBoard& board, uint64_t count, std::string_view name);
void NotePending(StallBoard& board, std::span<const uint64_t> keys);
// The key of an operation, by its process set and its name.
uint64_t KeyOf(int32_t set, std::string_view name);

// ---- the agent's side

// Nothing for a record without a wait, or one that changes all the time.
std::optional<OverdueWait> ReadWait(const WaitRecord& record);
// Nothing when some of them are not known.
std::optional<std::vector<uint32_t>> ReadSubmitters(const StallBoard& board);
std::optional<std::vector<uint64_t>> ReadPending(const StallBoard& board);

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_STALL_BOARD_H_
