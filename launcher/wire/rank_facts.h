// Facts about one rank, collected by its agent from outside the process: what the rank waits for,
// and its state in the kernel. Plain values.
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
  int64_t seen_ms = 0;    // time since the thread last checked and continued to wait
  uint8_t submitted = 0;  // all ranks have submitted it; it waits for data
  std::vector<uint32_t> awaited;
};

struct RankFacts {
  uint32_t rank = 0;
  int32_t pid = 0;
  uint8_t in_world = 0;      // in the generation: neither left nor lost
  std::string state;         // of its main thread: "R", "S", "D", "T", "t", "Z"; empty: gone
  std::string blocked_in;    // the system call of its main thread; empty: none, or not known
  uint32_t cpu_percent = 0;  // of one core, by the whole process
  uint64_t submitted = 0;    // collectives so far
  std::string last;          // the last one submitted
  uint64_t finished = 0;     // collectives finished when a wait was last recorded
  std::string last_finished;
  std::vector<WaitFacts> waits;
  uint8_t all_wait = 0;  // every thread that ever submitted waits, and their collectives are known
  std::vector<uint64_t> pending;  // keys of submitted, unfinished collectives
  std::string site;               // "file:line in function", where its main thread is
};

// The data of PyTorch's flight recorder in one process, as far as a verdict needs it.
enum class FlightState : uint8_t { kScheduled = 0, kStarted = 1, kCompleted = 2 };

// An operation that a rank has enqueued.
struct FlightEntry {
  uint64_t number = 0;  // sequence number of the collective in its group, or of the message
  uint8_t is_message = 0;
  FlightState state = FlightState::kScheduled;
  std::string operation;             // "all_reduce", "send 0->1"
  std::string tensors;               // of its input, else of its output: "Float [4, 3]"
  std::string type;                  // "Float"; empty: no tensor
  uint64_t inputs = 0, outputs = 0;  // total elements of all tensors
};

struct FlightGroup {
  std::string name, description;  // "0" and "default_pg"
  std::vector<uint32_t> ranks;    // its members; empty: unknown
  uint64_t last = 0;              // sequence number of the last enqueued collective
  // In enqueue order: those around the first unfinished one, and the last ones.
  std::vector<FlightEntry> entries;
};

struct FlightRecord {
  uint32_t worker = 0;
  uint32_t rank = 0;    // of torch.distributed
  std::string trouble;  // why there is no record, without a subject
  std::vector<FlightGroup> groups;
};

// An agent's observation, from outside, of a silent worker: by /proc continuously, and occasionally
// by Python stacks.
struct ScriptObservation {
  uint32_t worker = 0;
  uint8_t is_guest = 0;    // a rank started by the worker, which is torchrun or mpirun
  uint32_t guest = 0;      // its rank
  int32_t pid = 0;         // of its Python: the worker or a descendant
  std::string state;       // of its main thread: "R", "S", "D", "T", "t"
  std::string blocked_in;  // the system call of its main thread; empty: none, or not known
  int64_t silent_ms = 0;   // since its last output or progress of a collective of this runtime
  // How long its main thread has neither gone to sleep nor woken up.
  int64_t still_ms = 0;
  // Recent activity, including descendants.
  uint32_t cpu_permille = 0;  // of one core
  uint64_t bytes_moved = 0;   // read and written, files and pipes
  // From its stacks.
  uint8_t sampled = 0;      // the stacks were read
  int64_t sample_ms = 0;    // age of the last reading
  int64_t same_ms = 0;      // how long each reading has shown the same call at the same line
  std::string call;         // the other library's collective it is in; empty: none
  uint8_t may_compute = 0;  // the call may wait for other ranks or compute: backward()
  uint8_t once = 0;         // not called in a loop: init_process_group()
  std::string site;         // "file:line in function" of the user's script
  std::string inside;       // function called by that line: "save (torch/serialization.py)"
  std::string trouble;      // why the stacks could not be read, without a subject
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_RANK_FACTS_H_
