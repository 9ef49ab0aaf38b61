// Small messages between leaders, and the notices that one of them gives up or leaves.
//
// One receive from anybody is always posted; whoever waits for anything looks at it (Pump), so that
// messages come in whoever waits. Thread-safe; MPI is called by Post, Pump, Begin and Close only.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_

#include <mpi.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/base/status.h"

namespace hvd {

class MpiMailbox {
 public:
  MpiMailbox(MpiLibrary& library, MPI_Comm comm) : library_(library), comm_(comm) {}

  // The first receive.
  Status Post();
  // Takes in what has arrived; at once when another thread does that just now. True if something
  // had.
  Result<bool> Pump();
  // The oldest message with the tag from the rank, or from anybody.
  std::optional<InterHostMessage> Take(uint32_t rank, uint64_t tag);

  struct Sending {
    MpiBuffer buffer;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  enum class Kind : uint32_t {
    kMessage,
    kAbort,  // the other side's Pump fails with these words as the reason
    kLeave,  // this rank sends nothing more
  };
  // Starts to send; the bytes are copied.
  Result<Sending> Begin(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                        Kind kind = Kind::kMessage);
  // Sends a notice to all of them, as far as that goes without waiting.
  void Notify(const std::set<uint32_t>& ranks, Kind kind, const std::string& words);
  // Since when a rank is known to have left.
  std::optional<TimePoint> LeftSince(uint32_t rank);
  // Takes the receive back; nothing arrives any more.
  void Close();

 private:
  Status TakeIn(size_t bytes);
  Status PostLocked();

  MpiLibrary& library_;
  MPI_Comm comm_;
  std::mutex pump_;
  MpiBuffer buffer_;                        // guarded by pump_
  MPI_Request request_ = MPI_REQUEST_NULL;  // guarded by pump_
  std::mutex mutex_;
  std::map<uint64_t, std::deque<InterHostMessage>> messages_;  // by tag; guarded by mutex_
  std::map<uint32_t, TimePoint> left_;                         // by rank; guarded by mutex_
  std::atomic<bool> some_left_{false};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_MAILBOX_H_
