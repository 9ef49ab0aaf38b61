// What the flight recorder of PyTorch in one process says of its collectives, as far as a verdict
// needs it. Plain values.
#ifndef HVD_LAUNCHER_WIRE_FLIGHT_RECORD_H_
#define HVD_LAUNCHER_WIRE_FLIGHT_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

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

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_FLIGHT_RECORD_H_
