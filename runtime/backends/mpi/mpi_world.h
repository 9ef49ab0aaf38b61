// JoinedWorld: the ranks of one communicator, with communicators of our own over them.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_WORLD_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_WORLD_H_

#include <mpi.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/backends/mpi/mpi_plugin.h"

namespace hvd {

class JoinedWorld final : public MpiWorld {
 public:
  static Result<std::unique_ptr<JoinedWorld>> Join(const MpiJoinOptions& options);

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<RankPlace>& places() const override { return places_; }
  const std::string& id() const override { return id_; }
  std::string description() const override { return library_.description(); }
  bool threads_supported() const override { return library_.threads_supported(); }
  Result<std::vector<std::string>> Exchange(const std::string& value, TimePoint deadline) override;
  Result<std::unique_ptr<InterHostComm>> OpenInterHostComm() override;

 private:
  JoinedWorld(MpiLibrary& library, Duration remind) : library_(library), remind_(remind) {}
  Status ChooseRanks(std::span<const uint32_t> ranks, MPI_Comm* chosen);
  Status Open(const MpiJoinOptions& options);
  Status FindPlaces(TimePoint deadline);
  // Begins an MPI operation and waits for it.
  Status Complete(const char* what, TimePoint deadline,
                  const std::function<int(MPI_Request*)>& begin);
  // `all` gets every rank's block, by rank.
  Status GatherBlocks(const void* own, size_t bytes, std::vector<std::byte>* all,
                      TimePoint deadline);

  MpiLibrary& library_;
  const Duration remind_;
  uint32_t rank_ = 0, size_ = 1;
  // Never freed: the last messages of others may still be in flight, and Open MPI would deliver
  // them to a later communicator.
  MPI_Comm data_ = MPI_COMM_NULL, mail_ = MPI_COMM_NULL;
  std::vector<RankPlace> places_;
  std::string id_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_WORLD_H_
