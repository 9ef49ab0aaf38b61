// Small messages between leaders, and the notices that one of them aborts or leaves.
//
// One receive from any rank is always posted. Every waiting thread tests it (Pump), so messages
// arrive whichever thread waits. Thread-safe; only Post, Pump, Begin and Close call MPI.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_

#include <mpi.h>

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace hvd {

class MpiMailbox {
 public:
  MpiMailbox(MpiLibrary& library, MPI_Comm comm) : library_(library), comm_(comm) {}

  // The first receive.
  Status Post();
  // Receives what has arrived; returns at once if another thread is doing so. True if something had
  // arrived.
  Result<bool> Pump();
  // The oldest message with the tag from the rank, or from any rank if it is kAnyLeader.
  std::optional<InterHostMessage> Pop(uint32_t rank, uint64_t tag);

  struct Sending {
    MpiBuffer buffer;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  enum class Kind : uint32_t {
    kMessage,
    kAbort,  // the other side's Pump fails with this text as the reason
    kLeave,  // this rank sends nothing more
  };
  // Starts a send; copies the bytes.
  Result<Sending> Begin(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                        Kind kind = Kind::kMessage);
  // Sends a notice to all of them, as far as possible without blocking.
  void Notify(const std::set<uint32_t>& ranks, Kind kind, const std::string& reason);
  // When this rank was seen to leave; nothing while it has not.
  std::optional<TimePoint> LeftSince(uint32_t rank);
  // Cancels the receive; nothing arrives afterwards.
  void Close();

 private:
  Result<bool> PumpLocked() HVD_REQUIRES(pump_);
  Status Accept(size_t bytes) HVD_REQUIRES(pump_) HVD_EXCLUDES(mutex_);
  Status PostLocked() HVD_REQUIRES(pump_);

  MpiLibrary& library_;
  MPI_Comm comm_;
  Mutex pump_;  // taken before mutex_
  MpiBuffer buffer_ HVD_GUARDED_BY(pump_);
  MPI_Request request_ HVD_GUARDED_BY(pump_) = MPI_REQUEST_NULL;
  Mutex mutex_;
  std::map<uint64_t, std::deque<InterHostMessage>> messages_ HVD_GUARDED_BY(mutex_);  // by tag
  std::map<uint32_t, TimePoint> left_ HVD_GUARDED_BY(mutex_);                         // by rank
  std::atomic<bool> some_left_{false};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_
