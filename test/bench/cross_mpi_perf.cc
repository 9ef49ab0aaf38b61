// The peer of cross_perf: the same loop around Open MPI. `cross_mpi_perf [BYTES...]`, under mpirun.
#include <mpi.h>

#include "test/bench/cross_measure.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t bytes : cross_perf::SizesFrom(argc, argv, 1)) {
    cross_perf::Measure(static_cast<uint32_t>(rank), static_cast<uint32_t>(size), bytes,
                        [](float* data, size_t count) {
                          MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT,
                                        MPI_SUM, MPI_COMM_WORLD);
                        });
  }
  MPI_Finalize();
  return 0;
}
