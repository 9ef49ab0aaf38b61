#include "runtime/backends/inproc/inproc_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace hvd {
namespace {

using Inputs = std::vector<InprocBoard::Input>;

template <typename T, typename Wide>
void Combine(const CollectiveCall& call, const Inputs& parts) {
  auto* out = static_cast<T*>(call.output);
  const double divisor = call.op == ReduceOp::kAverage ? static_cast<double>(parts.size()) : 1.0;
  for (size_t i = 0; i < call.count; ++i) {
    Wide total{};
    for (size_t r = 0; r < parts.size(); ++r) {
      T element;
      std::memcpy(&element, parts[r]->data() + i * sizeof(T), sizeof(T));
      auto value = static_cast<Wide>(static_cast<Wide>(element) * call.prescale);
      if (call.prescale == 1.0) value = static_cast<Wide>(element);
      if (r == 0)
        total = value;
      else if (call.op == ReduceOp::kMin)
        total = std::min(total, value);
      else if (call.op == ReduceOp::kMax)
        total = std::max(total, value);
      else if (call.op == ReduceOp::kProduct)
        total *= value;
      else
        total += value;
    }
    const double scale = call.postscale / divisor;
    out[i] =
        scale == 1.0 ? static_cast<T>(total) : static_cast<T>(static_cast<double>(total) * scale);
  }
}

Status CombineTyped(const CollectiveCall& call, const Inputs& parts) {
  switch (call.dtype) {
    case DType::kUint8: Combine<uint8_t, int64_t>(call, parts); break;
    case DType::kInt32: Combine<int32_t, int64_t>(call, parts); break;
    case DType::kInt64: Combine<int64_t, int64_t>(call, parts); break;
    case DType::kFloat32: Combine<float, double>(call, parts); break;
    case DType::kFloat64: Combine<double, double>(call, parts); break;
    default:
      return Unsupported("the inproc backend does not reduce " + std::string(NameOf(call.dtype)));
  }
  return Status::Ok();
}

}  // namespace

uint64_t InprocBoard::Pin(std::vector<std::byte> input, uint32_t readers) {
  std::lock_guard lock(mutex_);
  uint64_t number = next_++;
  entries_[number] = {std::make_shared<const std::vector<std::byte>>(std::move(input)), readers};
  return number;
}

InprocBoard::Input InprocBoard::Take(uint64_t number) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(number);
  Input input = entry.input;
  if (--entry.readers == 0) entries_.erase(number);
  return input;
}

Result<Offer> InprocBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>*) {
  std::vector<std::byte> copy;
  const auto* input = static_cast<const std::byte*>(call.input);
  if (input != nullptr) copy.assign(input, input + call.bytes());
  Offer offer;
  offer.words[0] = board_.Pin(std::move(copy), size_);
  return offer;
}

Result<bool> InprocBackend::Start(const CollectiveCall& call, OpState*,
                                  std::span<const Offer> offers) {
  Inputs parts;
  for (const Offer& offer : offers) parts.push_back(board_.Take(offer.words[0]));
  if (call.collective == Collective::kBarrier) return true;
  if (call.collective == Collective::kBroadcast) {
    if (call.count != 0) std::memcpy(call.output, parts[call.root]->data(), call.bytes());
    return true;
  }
  if (Status combined = CombineTyped(call, parts); !combined.ok()) return combined;
  return true;
}

Result<bool> InprocBackend::Advance(const CollectiveCall&, OpState*) { return true; }

}  // namespace hvd
