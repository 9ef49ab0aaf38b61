// Sums of much data between leaders: cut into pieces, of which some are under way while another is
// added up. Each element is added up in the order of the leaders, so no cut changes a bit.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_
#define HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_

#include <memory>

#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

// Each leader adds up its part of each piece and sends it to the others. `call.cut` says how it is
// cut; takes scratch for the pieces under way.
Status SlicedAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count);

// The same, begun; any thread continues it, one at a time.
std::unique_ptr<InterHostSum> BeginSlicedAllreduce(Mesh& mesh, ScratchPool& pool,
                                                   const InterHostCall& call,
                                                   const ReduceSpec& spec, const void* input,
                                                   void* output, size_t count);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_LARGE_SUM_H_
