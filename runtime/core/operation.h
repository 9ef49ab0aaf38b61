// Operation: one submitted tensor of this rank, from Submit until its result is taken; and the table that gives handles.
#ifndef HVD_RUNTIME_CORE_OPERATION_H_
#define HVD_RUNTIME_CORE_OPERATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/collective.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct TensorName;

struct Operation {
  using Handle = uint64_t;  // never 0

  uint32_t slot = 0;
  uint32_t generation = 0;
  bool in_use = false;
  bool sent = false;     // announced to the peers
  bool started = false;  // every rank has announced it
  bool done = false;     // `status` is its result
  Status status;
  TensorName* name = nullptr;  // until done
  CollectiveCall call;
  Offer offer;
  std::unique_ptr<OpState> state;
  TimePoint waiting_since{};  // when a thread first slept for it
  TimePoint warned_at{};

  Handle handle() const { return (static_cast<Handle>(generation) << 32) | (slot + 1); }
};

// Operations by handle. Slots are used again under a new generation, so an old handle never finds a new operation.
// Pointers stay valid until Release.
class OperationTable {
 public:
  Operation* Add();
  // nullptr for a handle that was released or never given.
  Operation* Find(Operation::Handle handle) const;
  void Release(Operation* operation);

  // Calls body(Operation&) for each one that is not done.
  template <typename Body>
  void ForEachPending(Body body) {
    for (auto& operation : slots_) {
      if (operation->in_use && !operation->done) body(*operation);
    }
  }

 private:
  std::vector<std::unique_ptr<Operation>> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_OPERATION_H_
