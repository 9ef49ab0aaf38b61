#include "runtime/backends/hosts/members/local_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/backends/shm/gather_plan.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

constexpr size_t kChunkBytes = 128 << 10;
constexpr size_t kSmallBytes = 32 << 10;
// Larger than any count of chunks: added to `claimed`, it leaves none to claim.
constexpr uint64_t kStopped = uint64_t{1} << 48;
constexpr size_t kBlock = 2048;

}  // namespace

LocalSum::LocalSum(const CollectiveCall& call, std::vector<const void*> inputs, void* sum,
                   ResultStatus* result_status, WorkMark* at_work)
    : spec_{call.dtype, ArithmeticOf(call.op), call.prescale},
      wide_(InterHostType(call) != call.dtype),
      inputs_(std::move(inputs)),
      sum_(sum),
      result_status_(result_status),
      at_work_(at_work),
      count_(call.count),
      chunk_(kChunkBytes / SizeOf(call.dtype)) {}

bool LocalSum::IsSmall() const {
  return count_ * SizeOf(spec_.dtype) * inputs_.size() <= kSmallBytes;
}

void LocalSum::Combine(size_t first, size_t count) {
  if (wide_) {
    WideReduceRange(spec_, inputs_, sum_, first, count);
  } else {
    ReduceRange(spec_, inputs_, {&sum_, 1}, first, count);
  }
}

bool LocalSum::Help() {
  if (result_status_ == nullptr) return true;
  while (result_status_->claimed.load(std::memory_order_relaxed) < chunks()) {
    at_work_->fetch_add(1, std::memory_order_relaxed);
    const uint64_t chunk =
        result_status_->claimed.fetch_add(1, std::memory_order_release);  // after the mark
    if (chunk < chunks()) {
      const size_t first = chunk * chunk_;
      Combine(first, std::min(chunk_, count_ - first));
      result_status_->finished.fetch_add(1, std::memory_order_release);
    }
    at_work_->fetch_sub(1, std::memory_order_release);
  }
  return result_status_->finished.load(std::memory_order_acquire) >= chunks();
}

bool LocalSum::Stop() {
  if (result_status_ == nullptr) return true;
  // Kept from the first call: threads that try to claim a chunk later still increment `claimed`,
  // and get none.
  if (!taken_) {
    taken_ =
        std::min(chunks(), result_status_->claimed.fetch_add(kStopped, std::memory_order_relaxed));
  }
  return result_status_->finished.load(std::memory_order_acquire) >= *taken_;
}

void FinishSum(const CollectiveCall& call, uint32_t divisor, std::span<const void* const> inputs,
               void* output, size_t count) {
  const ReduceSpec spec{InterHostType(call), ArithmeticOf(call.op), 1.0, call.postscale,
                        static_cast<double>(divisor)};
  const bool as_it_is = inputs.size() == 1 && spec.dtype == call.dtype && spec.postscale == 1.0 &&
                        spec.divisor == 1.0;
  if (as_it_is) {  // faster than the arithmetic loops
    if (count != 0 && output != inputs[0]) CopyRange(output, inputs[0], count * SizeOf(spec.dtype));
    return;
  }
  if (spec.dtype == call.dtype) {
    ReduceRange(spec, inputs, {&output, 1}, 0, count);
    return;
  }
  // Through a block of its own, because a narrow output may overlap a wide input.
  alignas(kCacheLine) std::byte block[kBlock * SizeOf(DType::kInt128)];
  std::vector<const void*> from(inputs.size());
  void* to = block;
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t n = std::min(kBlock, count - first);
    for (size_t i = 0; i < inputs.size(); ++i)
      from[i] = static_cast<const std::byte*>(inputs[i]) + first * SizeOf(spec.dtype);
    ReduceRange(spec, from, {&to, 1}, 0, n);
    NarrowRange(call.dtype, block, static_cast<std::byte*>(output) + first * SizeOf(call.dtype), n);
  }
}

}  // namespace hvd
