// Operation: one submission of this rank, from Submit until its result is taken; and the table that
// assigns handles.
#ifndef HVD_RUNTIME_CORE_STATE_OPERATION_H_
#define HVD_RUNTIME_CORE_STATE_OPERATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/backends/activity_notes.h"
#include "runtime/backends/backend.h"
#include "runtime/backends/collective.h"
#include "runtime/base/clock.h"
#include "runtime/base/record_memory.h"
#include "runtime/base/status.h"
#include "runtime/core/request/process_set.h"
#include "runtime/core/request/request.h"

namespace hvd {

struct TensorName;

// One tensor of an operation.
struct OperationTensor {
  CollectiveCall call;
  BufferDescriptor descriptor;
  std::unique_ptr<OpState> state;
  CollectiveResult result;
  std::array<int64_t, kMaxDimensions> shape{};  // of the input
  uint32_t dimensions = 0;
  bool done = false;
};

// The completion callback of an operation. The engine stores it and never calls it.
struct DoneCallback {
  void (*function)() = nullptr;  // of the caller's own type
  void* arg = nullptr;
};

struct Operation : InRecordMemory {
  using Handle = uint64_t;  // never 0

  uint32_t slot = 0;
  uint32_t generation = 0;
  bool in_use = false;
  bool sent = false;     // announced to the peers
  bool started = false;  // every member has announced it or has joined
  bool done = false;     // `status` is its result
  bool retired = false;  // its name is free; Poll returns true
  Status status;
  Collective collective = Collective::kBarrier;
  TensorName* name = nullptr;           // until done
  TensorName* kept_name = nullptr;      // from done until retired
  uint64_t call = 0;                    // sequence number of the submitting call
  ProcessSet* set = nullptr;            // until done
  RecordVector<OperationTensor> parts;  // at least one
  size_t parts_left = 0;                // parts not done, once started
  std::vector<std::byte> message;       // an announcement in pieces, until it is sent
  size_t message_sent = 0;              // bytes already sent
  int32_t answer = -1;        // of a join: the last rank to join; of an added process set: its id
  TimePoint waiting_since{};  // when a thread first slept for it
  TimePoint warned_at{};
  DoneCallback callback;                    // no function: a thread waits, or will
  std::optional<ActivityNotes> activities;  // of its data; nullopt: not recorded

  bool on_device() const { return parts[0].call.device != DeviceKind::kHost; }
  Handle handle() const { return (static_cast<Handle>(generation) << 32) | (slot + 1); }
  static uint32_t GenerationOf(Handle handle) { return static_cast<uint32_t>(handle >> 32); }
};

// The error of waiting for a handle of an earlier world of this process.
Status WorldIsOver(Operation::Handle handle);

// The result of a finished operation.
struct OperationResult {
  struct Output {
    // SharedHeap memory, owned by the caller. Null if the caller supplied the memory.
    void* made = nullptr;
    std::vector<int64_t> shape;
  };
  std::vector<Output> outputs;  // one per tensor
  std::vector<int64_t> received_splits;
  int32_t last_joined_rank = -1;
  int32_t process_set = -1;  // id of the set that was added
};

// Moves the result out of a finished operation.
OperationResult TakeResult(Operation* operation);

// Operations by handle. Slots are reused with a new generation, so an old handle never finds a new
// operation. Pointers stay valid until Release.
class OperationTable {
 public:
  // `given`: the last generation of earlier tables of this process; generations up to it are not
  // reused.
  explicit OperationTable(uint32_t given) : given_before_(given), given_(given) {}
  uint32_t given() const { return given_; }

  Operation* Add();
  // nullptr for a handle that was released or never assigned.
  Operation* Find(Operation::Handle handle) const;
  // The error for a handle that Find does not find: WorldIsOver if it is of an earlier table,
  // otherwise kInvalidArgument.
  Status UnknownHandle(Operation::Handle handle) const;
  void Release(Operation* operation);

  // Calls body(Operation&) for each operation that is not done.
  template <typename Body>
  void ForEachPending(Body body) {
    for (auto& operation : slots_) {
      if (operation->in_use && !operation->done) body(*operation);
    }
  }
  // Calls body(Operation&) for each operation whose result has not been taken.
  template <typename Body>
  void ForEach(Body body) {
    for (auto& operation : slots_) {
      if (operation->in_use) body(*operation);
    }
  }

 private:
  const uint32_t given_before_;
  uint32_t given_;  // the newest generation
  std::vector<std::unique_ptr<Operation>> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_OPERATION_H_
