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

// What the flight recorder of PyTorch in one process says of its collectives, as far as a verdict
// needs it.
enum class FlightState : uint8_t { kScheduled = 0, kStarted = 1, kCompleted = 2 };

// An operation that a rank has enqueued.
struct FlightEntry {
  uint64_t number = 0;  // of the collective in its group, or of the message
  uint8_t is_message = 0;
  FlightState state = FlightState::kScheduled;
  std::string operation;             // "all_reduce", "send 0->1"
  std::string tensors;               // of its input, else of its output: "Float [4, 3]"
  std::string type;                  // "Float"; empty: it has no tensor
  uint64_t inputs = 0, outputs = 0;  // elements of all tensors together
};

struct FlightGroup {
  std::string name, description;  // "0" and "default_pg"
  std::vector<uint32_t> ranks;    // its members; empty: not known
  uint64_t last = 0;              // number of the last collective that was enqueued
  // In the order in which they were enqueued: those before and after the first that has not ended,
  // and the last ones.
  std::vector<FlightEntry> entries;
};

struct FlightRecord {
  uint32_t worker = 0;
  uint32_t rank = 0;    // of torch.distributed
  std::string trouble;  // why there is none, without a subject
  std::vector<FlightGroup> groups;
};

// What an agent finds out, from outside, about one of its workers that shows nothing: by /proc all
// the time, and now and then by the stacks of its Python.
struct ScriptObservation {
  uint32_t worker = 0;
  uint8_t is_guest = 0;    // a rank that the worker, which is torchrun or mpirun, has started
  uint32_t guest = 0;      // its number
  int32_t pid = 0;         // of its Python: the worker's own, or one below it
  std::string state;       // of its main thread: "R", "S", "D", "T", "t"
  std::string blocked_in;  // the system call of its main thread; empty: none, or not known
  int64_t silent_ms = 0;   // since it wrote something, or a collective of ours moved on
  // For so long its main thread has not gone to sleep, nor woken up: it has slept all the time, or
  // has run all the time.
  int64_t still_ms = 0;
  // Lately, together with the processes below it.
  uint32_t cpu_permille = 0;  // of one core
  uint64_t bytes_moved = 0;   // read and written, by files and pipes
  // By its stacks.
  uint8_t sampled = 0;      // they were read
  int64_t sample_ms = 0;    // so long ago
  int64_t same_ms = 0;      // for so long each look has shown the same call at the same line
  std::string call;         // the collective of another library that it is in; empty: none
  uint8_t may_compute = 0;  // the call waits for other ranks, or computes: backward()
  uint8_t once = 0;         // no loop calls it: init_process_group()
  std::string site;         // "file:line in function" of the user's script
  std::string inside;       // what that line has called: "save (torch/serialization.py)"
  std::string trouble;      // why the stacks could not be read, without a subject
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_RANK_FACTS_H_
