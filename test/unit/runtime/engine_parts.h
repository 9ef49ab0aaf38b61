// One rank's tables and requests for unit tests of the engine's parts.
#ifndef HVD_TEST_UNIT_RUNTIME_ENGINE_PARTS_H_
#define HVD_TEST_UNIT_RUNTIME_ENGINE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/request/request.h"
#include "runtime/core/state/engine_state.h"

namespace hvd::test {

inline RequestSpec BarrierOf(std::string_view name) {
  RequestSpec spec;
  spec.collective = Collective::kBarrier;
  spec.name = name;
  return spec;
}

// Views `shape`; without memory.
inline RequestSpec TensorOf(Collective collective, std::string_view name,
                            std::span<const int64_t> shape) {
  RequestSpec spec;
  spec.collective = collective;
  spec.name = name;
  spec.tensor.dtype = DType::kFloat32;
  spec.tensor.shape = shape;
  return spec;
}

// Rank `self` of `size` on one host.
struct OneRank {
  OneRank(uint32_t self, uint32_t size) : state(WorldOnOneHost(self, size), self, size, 0) {}

  // The rank submits the request and announces it.
  Operation* Submit(const RequestSpec& spec) {
    Operation* op = Describe(spec);
    op->sent = true;
    return op;
  }
  // The peer announces the same request.
  void Announce(TensorName* name, uint32_t peer) {
    name->details[peer] = name->own_detail;
    name->here[peer] = 1;
    ++name->arrived;
  }
  // An operation whose announcement is not sent.
  Operation* Describe(const RequestSpec& spec) {
    const int32_t domain = NameTable::DomainOf(spec.collective, spec.process_set);
    ProcessSet* world = &state.sets.world();
    TensorName* name = state.names.Find(domain, spec.name);
    if (name == nullptr) name = state.names.Add(domain, world, spec.name);
    name->own_detail = DetailOf(spec, world->group.size());
    name->calls = CallsOf(name->own_detail, world->group);
    Operation* op = state.operations.Add();
    op->collective = spec.collective;
    op->name = name;
    op->set = world;
    op->parts.clear();
    op->parts.resize(name->calls.size());
    name->operation = op;
    ++world->in_flight;
    return op;
  }

  EngineState state;
};

}  // namespace hvd::test

#endif  // HVD_TEST_UNIT_RUNTIME_ENGINE_PARTS_H_
