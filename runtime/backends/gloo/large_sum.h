// Large sums between leaders: split into pieces, some in flight while another is added up. Each
// element is added up in the order of the leaders, so no split changes a bit.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_
#define HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_

#include <memory>

#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

// Each leader adds up its part of each piece and sends it to the others. `call.cut` determines the
// pieces; needs scratch for those in flight.
Status SlicedAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count);

// Begins the same; any thread continues it, one at a time.
std::unique_ptr<InterHostSum> BeginSlicedAllreduce(Mesh& mesh, ScratchPool& pool,
                                                   const InterHostCall& call,
                                                   const ReduceSpec& spec, const void* input,
                                                   void* output, size_t count);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_
