// The peer of hvd_perf: the same loops around Open MPI, in place where that is possible, which is
// its fastest way.
#include <mpi.h>

#include <cstdlib>

#include "cmd/hvd_perf/measure.h"

int main(int argc, char** argv) {
  hvd_perf::Options options = hvd_perf::ParseArguments(argc, argv, "mpi_perf");
  MPI_Init(&argc, &argv);
  hvd_perf::Library library;
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.size);
  library.allreduce = [](float* data, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  library.broadcast = [](float* data, size_t count) {
    MPI_Bcast(data, static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD);
  };
  library.allgather = [](const float* in, float* out, size_t count) {
    const int share = static_cast<int>(count);
    MPI_Allgather(in, share, MPI_FLOAT, out, share, MPI_FLOAT, MPI_COMM_WORLD);
  };
  const auto ranks = static_cast<size_t>(library.size);
  library.alltoall = [ranks](const float* in, float* out, size_t count) {
    const int share = static_cast<int>(count / ranks);
    MPI_Alltoall(in, share, MPI_FLOAT, out, share, MPI_FLOAT, MPI_COMM_WORLD);
  };
  library.reducescatter = [ranks](const float* in, float* out, size_t count) {
    const int share = static_cast<int>(count / ranks);
    MPI_Reduce_scatter_block(in, out, share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  library.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  library.allocate = [](size_t bytes, bool) { return static_cast<float*>(std::malloc(bytes)); };
  library.free = [](float* memory, bool) { std::free(memory); };
  bool correct = hvd_perf::RunAll(library, options);
  MPI_Finalize();
  return correct ? 0 : 1;
}
