// The options passed to hvd_init.
#ifndef HVD_RUNTIME_API_INIT_OPTIONS_H_
#define HVD_RUNTIME_API_INIT_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

struct InitOptions {
  Duration timeout{0};                              // <= 0: no limit of its own
  std::vector<std::vector<uint32_t>> process_sets;  // world ranks; the sets get the ids 1, 2, ...
  const void* mpi_comm = nullptr;                   // an MPI_Comm* whose ranks form the world
  // The started ranks that form the world, ascending, without duplicates. Empty: all.
  std::vector<uint32_t> ranks;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_INIT_OPTIONS_H_
