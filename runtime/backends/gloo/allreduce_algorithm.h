// Chooses the algorithm of an allreduce between leaders. Pure.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_ALGORITHM_H_
#define HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_ALGORITHM_H_

#include <cstddef>
#include <cstdint>

namespace hvd {

// direct.h, large_sum.h
enum class AllreduceAlgorithm { kDirect, kSliced };

// By size and number of leaders.
AllreduceAlgorithm ChooseAllreduce(size_t bytes, size_t leaders);

// The pieces of a large sum in flight at once, if each leader adds up `part_bytes` of one: as many
// as keep a link of 100 Gbit/s busy over the longest round trip to another leader (in us; 0:
// unknown), 2 to 8. Leaders may differ.
size_t PiecesInFlight(uint64_t round_trip_us, size_t part_bytes);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_ALGORITHM_H_
