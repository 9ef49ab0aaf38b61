// Outbox: sends this rank's announcements, in order of submission, and its abort notice to the
// other ranks of its host.
//
// Announcements that do not fit into the stream are queued here. Nothing blocks. One thread at a
// time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_OUTBOX_H_
#define HVD_RUNTIME_CORE_OUTBOX_H_

#include <deque>
#include <string>

#include "runtime/backends/peers.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class Outbox {
 public:
  Outbox(Peers& peers, NameTable& names) : peers_(peers), names_(names) {}

  // Announces the operation (sets op->sent), or queues it if the stream is full.
  void Announce(Operation* op);
  // Announces the first operation of the queue and returns it. Null if the queue is empty or the
  // stream is still full.
  Operation* AnnounceNext();
  // Removes an operation that ended before it was announced. No-op if it is not in the queue.
  void Withdraw(Operation* op) { std::erase(unsent_, op); }
  // Clears the queue, but not the abort notice.
  void Clear() { unsent_.clear(); }

  // Sends this rank's reason for ending the world, now or in a later SendAbortNotice().
  void SendAbortNotice(std::string reason);
  // Sends the pending notice, if any.
  void SendAbortNotice() {
    if (!abort_notice_.empty()) WriteAbortNotice();
  }

  bool has_unsent() const { return !unsent_.empty(); }
  bool empty() const { return unsent_.empty() && abort_notice_.empty(); }

 private:
  bool Write(Operation* op);
  bool WritePieces(Operation* op);
  void WriteAbortNotice();

  Peers& peers_;
  NameTable& names_;
  std::deque<Operation*> unsent_;  // in order of submission
  std::string abort_notice_;       // not sent yet
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_OUTBOX_H_
