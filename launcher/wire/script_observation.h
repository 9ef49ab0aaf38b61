// What an agent finds out, from outside, about one of its workers that shows nothing: by /proc all
// the time, and now and then by the stacks of its Python. Plain values.
#ifndef HVD_LAUNCHER_WIRE_SCRIPT_OBSERVATION_H_
#define HVD_LAUNCHER_WIRE_SCRIPT_OBSERVATION_H_

#include <cstdint>
#include <string>

namespace hvd {

struct ScriptObservation {
  uint32_t worker = 0;
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

#endif  // HVD_LAUNCHER_WIRE_SCRIPT_OBSERVATION_H_
