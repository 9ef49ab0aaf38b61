// StallBoard: what a rank publishes about its waits, so that its agent can explain a stall. Part of
// the rank's block in the job page: written by the rank's threads, one at a time, and read by the
// agent. SEGMENT.md has the rules.
//
// A wait is recorded once it has lasted as long as one sleep of the engine, so a collective that
// completes in time costs nothing here.
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
  std::atomic<uint64_t> id;         // of the operation, never reused by a process; 0: no wait
  std::atomic<int64_t> since_ns;    // steady clock of the host, like seen_ns
  std::atomic<int64_t> seen_ns;     // when the thread last found that it must keep waiting
  std::atomic<uint32_t> thread;     // kernel thread id
  std::atomic<int32_t> set;         // the process set
  std::atomic<uint32_t> submitted;  // 1: every rank has submitted the operation; it waits for data
  std::atomic<uint32_t> awaited_count;  // may exceed the array
  std::atomic<uint32_t> awaited[16];    // world ranks
  char name[128];                       // truncated, zero-terminated
};

struct alignas(64) StallBoard {
  std::atomic<uint64_t> warning_ms;   // of the rank's stall check; 0: none
  std::atomic<uint64_t> shutdown_ms;  // 0: none
  // On stack_signal a handler of the rank writes the Python stacks of all threads to stack_fd; 0:
  // no handler.
  std::atomic<uint32_t> stack_signal;
  std::atomic<uint32_t> stack_fd;
  // Threads that have submitted an operation. `submitters` may exceed the array.
  std::atomic<uint32_t> submitters;
  std::atomic<uint32_t> submitter[8];
  // At the last recorded wait: how many operations had ended, and the name of the last of them.
  std::atomic<uint64_t> finished;
  char finished_name[64];
  // At that time: the number of submitted operations that had not ended (may exceed the array) and
  // their keys.
  std::atomic<uint32_t> pending;
  std::atomic<uint64_t> pending_key[64];
  WaitRecord waits[4];
};

// A wait as recorded by its thread.
struct WaitNote {
  uint64_t key = 0, id = 0;
  int64_t since_ns = 0, seen_ns = 0;
  uint32_t thread = 0;
  int32_t set = 0;
  bool submitted = false;
  std::span<const uint32_t> awaited;
  std::string_view name;
};

// A wait as read by the agent.
struct OverdueWait {
  uint64_t key = 0, id = 0;
  int64_t since_ns = 0, seen_ns = 0;
  uint32_t thread = 0;
  int32_t set = 0;
  bool submitted = false;
  std::vector<uint32_t> awaited;
  std::string name;  // arbitrary bytes: the rank may have written garbage
};

// ---- the rank's side: one thread at a time

// Writes the thread's record or a free one; dropped if other threads occupy all of them.
void NoteWait(StallBoard& board, const WaitNote& note);
// The thread has stopped waiting for an operation.
void EndWait(StallBoard& board, uint32_t thread);
void NoteSubmitter(StallBoard& board, uint32_t thread);
void NoteFinished(StallBoard& board, uint64_t count, std::string_view name);
void NotePending(StallBoard& board, std::span<const uint64_t> keys);
// The key of an operation, from its process set and name.
uint64_t KeyOf(int32_t set, std::string_view name);

// ---- the agent's side

// nullopt for a record without a wait or one that keeps changing.
std::optional<OverdueWait> ReadWait(const WaitRecord& record);
// nullopt if there are more than the array holds.
std::optional<std::vector<uint32_t>> ReadSubmitters(const StallBoard& board);
std::optional<std::vector<uint64_t>> ReadPending(const StallBoard& board);

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_STALL_BOARD_H_
