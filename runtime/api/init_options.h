// The options that hvd_init was given.
#ifndef HVD_RUNTIME_API_INIT_OPTIONS_H_
#define HVD_RUNTIME_API_INIT_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

struct InitOptions {
  Duration timeout{0};                              // <= 0: no limit of its own
  std::vector<std::vector<uint32_t>> process_sets;  // world ranks; they get the ids 1, 2, ...
  const void* mpi_comm = nullptr;                   // an MPI_Comm* whose ranks are to be the world
  // These of the ranks that were started are to be the world; ascending, none twice. Empty: all of
  // them.
  std::vector<uint32_t> ranks;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_INIT_OPTIONS_H_
