// MpiInterHostComm: the InterHostComm over MPI. Uses point-to-point messages only: everything is
// added in the order of the leaders, and a wait ends at its deadline, at its idle limit, or on an
// abort.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_INTER_HOST_COMM_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_INTER_HOST_COMM_H_

#include <mpi.h>

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/mpi/mpi_exchange.h"
#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/backends/mpi/mpi_mailbox.h"
#include "runtime/backends/mpi/mpi_streams.h"
#include "runtime/base/mutex.h"

namespace hvd {

class MpiInterHostComm final : public InterHostComm {
 public:
  // `data` and `mail` are communicators of the whole world that nothing else uses; they outlive
  // this object. `neighbours` are notified of an abort even if nothing was ever sent to them.
  MpiInterHostComm(MpiLibrary& library, MPI_Comm data, MPI_Comm mail, uint32_t rank,
                   std::set<uint32_t> neighbours)
      : library_(library),
        data_(data),
        rank_(rank),
        neighbours_(std::move(neighbours)),
        pool_(library),
        mailbox_(library, mail) {}
  ~MpiInterHostComm() override;
  Status Open();

  std::string_view name() const override { return "mpi"; }
  Status Allreduce(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                   void* output, size_t count) override;
  Status Broadcast(const InterHostCall& call, uint32_t root, void* data, size_t bytes) override;
  Status Allgatherv(const InterHostCall& call, const void* input, std::span<const size_t> bytes,
                    void* output) override;
  Status Alltoallv(const InterHostCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes) override;
  Status Reducescatterv(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                        std::span<const size_t> counts, void* output) override;
  Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
              TimePoint deadline) override;
  Result<InterHostMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) override;
  std::vector<InterHostSilence> Silences() const override { return {}; }  // not known to MPI
  void Wake() override { woken_.store(true, std::memory_order_release); }
  void Abort(const Status& why) override;

 private:
  // One phase of an operation: `fill` adds its streams.
  Status Perform(const InterHostCall& call, uint64_t phase, const std::string& what,
                 const std::function<void(Exchange&)>& fill);
  Status Gather(const InterHostCall& call, uint64_t phase, const std::string& what,
                const void* input, std::span<const size_t> bytes, void* output);
  Status ReduceScatter(const InterHostCall& call, const std::string& what, const ReduceSpec& spec,
                       const std::byte* input, std::span<const size_t> counts, std::byte* output);
  Status ReduceGathered(const InterHostCall& call, const std::string& what, const ReduceSpec& spec,
                        const void* input, void* output, size_t count);
  Status Check(const InterHostCall& call);
  Status WithRank(Status status) const;  // adds our rank
  // Not ok if the work was aborted. Receives small messages.
  Status CheckHealth();
  Status Fail(Status why);
  bool HasLeft(uint32_t rank);
  void Meet(std::span<const uint32_t> leaders);

  MpiLibrary& library_;
  MPI_Comm data_;
  uint32_t rank_;
  const std::set<uint32_t> neighbours_;
  ChunkPool pool_;
  MpiMailbox mailbox_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> aborted_{false};
  Mutex mutex_;
  Status why_ HVD_GUARDED_BY(mutex_);              // of the abort
  std::set<uint32_t> met_ HVD_GUARDED_BY(mutex_);  // the leaders to notify of an abort
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_INTER_HOST_COMM_H_
