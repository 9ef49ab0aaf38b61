// Executor: runs this rank's operations on the backend, tensor by tensor: Prepare, Start, Advance
// until all are done, or Abandon. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_EXECUTOR_H_
#define HVD_RUNTIME_CORE_EXECUTOR_H_

#include <cstdint>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/base/status.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/operation.h"
#include "runtime/core/state/rounds.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class Executor {
 public:
  // `devices`: for device memory; null: such tensors are refused before they get here. `heap`: for
  // outputs that the backends allocate.
  Executor(Peers& peers, Backend& backend, Backend* devices, SharedHeap& heap, Rounds& rounds)
      : peers_(peers), backend_(backend), devices_(devices), heap_(heap), rounds_(rounds) {}

  // Fills op->parts from the calls of its name and the memory of the request. `caller_waits`: as in
  // CollectiveCall. After an error nothing needs to be abandoned.
  Status Prepare(Operation* op, const RequestSpec& spec, bool caller_waits);

  // Lets the backend work ahead while the submitting thread waits for members that have not
  // announced the operation.
  void WorkAhead(Operation* op) {
    for (OperationTensor& part : op->parts) {
      if (part.call.caller_waits) For(part.call).WorkAhead(part.call, part.state.get());
    }
  }

  // Call once every member has announced the round. `agreed`: whether the members on this host
  // agree; if there are members on other hosts, a disagreement is sent to them and comes back as a
  // failure. An operation with parts_left == 0 is complete.
  Status Start(Operation* op, const Status& agreed);
  // Continues a started operation; call until parts_left is 0.
  Status Advance(Operation* op);

  // Whether a started operation cannot complete without this peer.
  bool Needs(const Operation& op, uint32_t peer) const;
  // What a started operation waits for, as text: "for ... to ...".
  std::string Awaits(const Operation& op) const;
  // The same as ranks.
  AwaitedRanks AwaitedBy(const Operation& op) const;
  // Fails a started operation with this reason if members on other hosts have not submitted it;
  // otherwise it continues to its end.
  void Withdraw(const Operation& op, std::string why);

  // Releases what the operation, which ends with this status, still holds. `peers_may_work`: memory
  // that peers can access is never reused.
  void Finish(Operation* op, const Status& status, bool peers_may_work);
  // Frees allocated outputs that will not be returned to the caller.
  void FreeOutputs(Operation* op) {
    for (OperationTensor& part : op->parts) {
      if (part.result.made_output != nullptr) FreeOutput(&part);
    }
  }

  // The world ends: fails operations that wait for members on other hosts.
  void Abort(const Status& why) {
    backend_.Abort(why);
    if (devices_ != nullptr) devices_->Abort(why);
  }

 private:
  Status PreparePart(Operation* op, OperationTensor* part, const TensorSpec* tensor);
  Status StartOnHost(Operation* op);
  Status StartCrossHost(Operation* op, const Status& agreed);
  void FreeOutput(OperationTensor* part);
  Backend& For(const CollectiveCall& call) const {
    return call.device == DeviceKind::kHost ? backend_ : *devices_;
  }

  Peers& peers_;
  Backend& backend_;
  Backend* const devices_;
  SharedHeap& heap_;
  Rounds& rounds_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_EXECUTOR_H_
