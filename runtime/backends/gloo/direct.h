// Collectives in which every leader exchanges with every other at once: one step, so the fastest
// for small data. Every sum is computed in one place from all parts in the order of the leaders, so
// half types are rounded once.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_DIRECT_H_
#define HVD_RUNTIME_BACKENDS_GLOO_DIRECT_H_

#include <memory>
#include <span>

#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

// Every leader receives all data and adds it up. Needs scratch of (leaders - 1) times the data.
Status DirectAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count);

// Begins the same; any thread continues it, one at a time.
std::unique_ptr<InterHostSum> BeginDirectAllreduce(Mesh& mesh, ScratchPool& pool,
                                                   const InterHostCall& call,
                                                   const ReduceSpec& spec, const void* input,
                                                   void* output, size_t count);

Status DirectReducescatterv(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                            const ReduceSpec& spec, const void* input,
                            std::span<const size_t> counts, void* output);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_DIRECT_H_
