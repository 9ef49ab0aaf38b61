#include "runtime/backends/hosts/persistent_sum.h"

#include <array>
#include <utility>

#include "runtime/backends/shm/gather_plan.h"

namespace hvd {

PersistentSum::PersistentSum(const CollectiveCall& call, const ReadyMessage& report, uint32_t rank)
    : offer_(report, rank == 0, call.bytes()),
      spec_(SpecOf(call, DivisorOf(call.op, call.group->size(), call.group->size()))),
      count_(call.count),
      first_(rank == 0) {}

void PersistentSum::Add(const void* own, std::string_view other, void* output) const {
  std::array<const void*, 2> parts{own, other.data()};
  if (!first_) std::swap(parts[0], parts[1]);
  ReduceRange(spec_, parts, {&output, 1}, 0, count_);
}

}  // namespace hvd
