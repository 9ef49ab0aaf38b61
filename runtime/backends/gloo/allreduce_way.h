// Which way an allreduce between leaders takes. Pure.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_WAY_H_
#define HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_WAY_H_

#include <cstddef>

namespace hvd {

// direct.h, large_sum.h
enum class AllreduceAlgorithm { kDirect, kSliced };

// By size and number of leaders.
AllreduceAlgorithm ChooseAllreduce(size_t bytes, size_t leaders);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_ALLREDUCE_WAY_H_
