#include "test/fakes/nccl/fake_nccl_data.h"

#include <cstdlib>
#include <cstring>

#include "runtime/device/host_reduce.h"

namespace hvd::test {
namespace {

std::byte* At(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

uint64_t BytesOf(const NcclCall& call) { return call.count * SizeOf(DTypeOfNccl(call.type)); }

void CopyTo(uint64_t to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memmove(At(to), from, bytes);
}

Arithmetic ArithmeticOf(NcclReduceOp op) {
  switch (op) {
    case kNcclMin: return Arithmetic::kMin;
    case kNcclMax: return Arithmetic::kMax;
    case kNcclProduct: return Arithmetic::kProduct;
    default: return Arithmetic::kSum;
  }
}

// Of `count` elements of every rank.
std::vector<std::byte> Reduce(const FakeMeeting& meeting, size_t count) {
  const NcclCall& any = meeting.calls.begin()->second;
  const DType dtype = DTypeOfNccl(any.type);
  const size_t bytes = count * SizeOf(dtype);
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> pointers;
  for (const auto& [rank, call] : meeting.calls) {
    std::vector<std::byte>& input = inputs.emplace_back(At(call.from), At(call.from) + bytes);
    auto factor = meeting.factors.find(rank);
    if (factor == meeting.factors.end()) continue;
    const void* from = input.data();
    void* to = input.data();
    ReduceRange({.dtype = dtype, .prescale = factor->second}, {&from, 1}, {&to, 1}, 0, count);
  }
  for (const auto& input : inputs) pointers.push_back(input.data());
  std::vector<std::byte> result(bytes);
  void* to = result.data();
  const double divisor = any.op == kNcclAverage ? static_cast<double>(meeting.calls.size()) : 1.0;
  const bool divides_after = divisor != 1.0 && IsInteger(dtype);  // of the sum in the type itself
  ReduceRange({.dtype = dtype,
               .arithmetic = ArithmeticOf(any.op),
               .divisor = divides_after ? 1.0 : divisor},
              pointers, {&to, 1}, 0, count);
  if (divides_after) {
    const void* sum = to;
    ReduceRange({.dtype = dtype, .divisor = divisor}, {&sum, 1}, {&to, 1}, 0, count);
  }
  return result;
}

void Gather(const FakeMeeting& meeting) {
  std::vector<std::byte> all;
  for (const auto& [rank, call] : meeting.calls) {
    all.insert(all.end(), At(call.from), At(call.from) + BytesOf(call));
  }
  for (const auto& [rank, call] : meeting.calls) CopyTo(call.to, all.data(), all.size());
}

}  // namespace

DType DTypeOfNccl(NcclDataType type) {
  switch (type) {
    case kNcclInt8: return DType::kInt8;
    case kNcclUint8: return DType::kUint8;
    case kNcclInt32: return DType::kInt32;
    case kNcclInt64: return DType::kInt64;
    case kNcclFloat16: return DType::kFloat16;
    case kNcclFloat32: return DType::kFloat32;
    case kNcclFloat64: return DType::kFloat64;
    case kNcclBfloat16: return DType::kBfloat16;
    case kNcclFloat8E4m3: return DType::kFloat8E4m3;
    case kNcclFloat8E5m2: return DType::kFloat8E5m2;
    default: std::abort();
  }
}

std::vector<FakeRange> RangesOf(const NcclCall& call, int rank, size_t size) {
  const uint64_t bytes = BytesOf(call);
  const bool is_root = call.peer == rank;
  switch (call.kind) {
    case NcclCallKind::kAllReduce: return {{call.from, bytes}, {call.to, bytes}};
    case NcclCallKind::kReduce:
      return is_root ? std::vector<FakeRange>{{call.from, bytes}, {call.to, bytes}}
                     : std::vector<FakeRange>{{call.from, bytes}};
    case NcclCallKind::kBroadcast:
      return is_root ? std::vector<FakeRange>{{call.from, bytes}, {call.to, bytes}}
                     : std::vector<FakeRange>{{call.to, bytes}};
    case NcclCallKind::kAllGather: return {{call.from, bytes}, {call.to, bytes * size}};
    case NcclCallKind::kReduceScatter: return {{call.from, bytes * size}, {call.to, bytes}};
    case NcclCallKind::kSend: return {{call.from, bytes}};
    case NcclCallKind::kRecv: return {{call.to, bytes}};
  }
  return {};
}

void MoveData(const FakeMeeting& meeting) {
  const NcclCall& any = meeting.calls.begin()->second;
  const size_t bytes = BytesOf(any);
  switch (any.kind) {
    case NcclCallKind::kAllReduce: {
      const std::vector<std::byte> result = Reduce(meeting, any.count);
      for (const auto& [rank, call] : meeting.calls) CopyTo(call.to, result.data(), bytes);
      break;
    }
    case NcclCallKind::kReduce:
      CopyTo(meeting.calls.at(any.peer).to, Reduce(meeting, any.count).data(), bytes);
      break;
    case NcclCallKind::kReduceScatter: {
      const std::vector<std::byte> result = Reduce(meeting, any.count * meeting.calls.size());
      for (const auto& [rank, call] : meeting.calls) {
        CopyTo(call.to, result.data() + static_cast<size_t>(rank) * bytes, bytes);
      }
      break;
    }
    case NcclCallKind::kBroadcast: {
      const std::byte* from = At(meeting.calls.at(any.peer).from);
      for (const auto& [rank, call] : meeting.calls) CopyTo(call.to, from, bytes);
      break;
    }
    case NcclCallKind::kAllGather: Gather(meeting); break;
    case NcclCallKind::kSend:
    case NcclCallKind::kRecv:
      CopyTo(meeting.calls.at(1).to, At(meeting.calls.at(0).from), bytes);
      break;
  }
}

}  // namespace hvd::test
