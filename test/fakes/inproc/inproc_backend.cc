#include "test/fakes/inproc/inproc_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace hvd {
namespace {

using Input = std::span<const std::byte>;

// The inputs that the ranks that take part brought.
std::vector<Input> InputsOf(const MemberInputs& parts) {
  std::vector<Input> inputs;
  for (size_t i = 0; i < parts.descriptors.size(); ++i) {
    if (parts.joined.empty() || parts.joined[i] == 0)
      inputs.push_back(parts.descriptors[i].payload);
  }
  return inputs;
}

template <typename T>
T At(Input input, size_t i) {
  T element;
  std::memcpy(&element, input.data() + i * sizeof(T), sizeof(T));
  return element;
}

// Reduces elements [first, first + count) of all inputs into `out`, which may be one of them.
template <typename T, typename Wide>
void Combine(const CollectiveCall& call, const std::vector<Input>& inputs, size_t first,
             size_t count, std::byte* out) {
  // Of an integer the quotient is an integer.
  const auto divisor = static_cast<Wide>(
      DivisorOf(call.op, call.group->size(), static_cast<uint32_t>(inputs.size())));
  for (size_t i = 0; i < count; ++i) {
    Wide total{};
    for (size_t r = 0; r < inputs.size(); ++r) {
      const T element = At<T>(inputs[r], first + i);
      auto value = static_cast<Wide>(element);
      if (call.prescale != 1.0)
        value = static_cast<Wide>(static_cast<Wide>(element) * call.prescale);
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
    if (call.postscale != 1.0)
      total = static_cast<Wide>(static_cast<double>(total) * call.postscale);
    const auto result = static_cast<T>(total / divisor);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

// a (1 - ab / 2aa) + b (1 - ab / 2bb): the common part of a and b once, the rest of both.
std::vector<double> AdasumOf(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  const double of_a = aa == 0 ? 1 : 1 - ab / (2 * aa), of_b = bb == 0 ? 1 : 1 - ab / (2 * bb);
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = of_a * a[i] + of_b * b[i];
  return sum;
}

// Neighbours in pairs, then pairs of pairs; one left over goes on alone.
template <typename T>
void Adasum(const CollectiveCall& call, const std::vector<Input>& inputs, std::byte* out) {
  std::vector<std::vector<double>> level;
  for (Input input : inputs) {
    std::vector<double> values(call.count);
    for (size_t i = 0; i < call.count; ++i) values[i] = At<T>(input, i) * call.prescale;
    level.push_back(std::move(values));
  }
  while (level.size() > 1) {
    std::vector<std::vector<double>> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(AdasumOf(level[i], level[i + 1]));
    }
    if (level.size() % 2 == 1) next.push_back(std::move(level.back()));
    level = std::move(next);
  }
  for (size_t i = 0; i < call.count; ++i) {
    const T result = static_cast<T>(level[0][i] * call.postscale);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

Status NotReduced(const CollectiveCall& call) {
  return Unsupported("the inproc backend does not reduce " + std::string(NameOf(call.dtype)));
}

Status Reduce(const CollectiveCall& call, const MemberInputs& parts, size_t first, size_t count,
              std::byte* out) {
  const std::vector<Input> inputs = InputsOf(parts);
  if (call.op == ReduceOp::kAdasum) {
    if (call.dtype == DType::kFloat32) return Adasum<float>(call, inputs, out), Status::Ok();
    if (call.dtype == DType::kFloat64) return Adasum<double>(call, inputs, out), Status::Ok();
    return NotReduced(call);
  }
  switch (call.dtype) {
    case DType::kUint8: Combine<uint8_t, int64_t>(call, inputs, first, count, out); break;
    case DType::kInt32: Combine<int32_t, int64_t>(call, inputs, first, count, out); break;
    case DType::kInt64: Combine<int64_t, int64_t>(call, inputs, first, count, out); break;
    case DType::kFloat32: Combine<float, double>(call, inputs, first, count, out); break;
    case DType::kFloat64: Combine<double, double>(call, inputs, first, count, out); break;
    default: return NotReduced(call);
  }
  return Status::Ok();
}

void Copy(std::byte* out, const std::byte* in, size_t bytes) {
  if (bytes != 0) std::memmove(out, in, bytes);
}

}  // namespace

Status InprocBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>*,
                              BufferDescriptor* descriptor) {
  *descriptor = {};
  descriptor->payload = {static_cast<const std::byte*>(call.input),
                         call.input == nullptr ? 0 : call.bytes()};
  return Status::Ok();
}

// Where the result goes: `rows` of it, in memory of the caller or made here.
Result<std::byte*> InprocBackend::OutputOf(const CollectiveCall& call, int64_t rows) {
  call.result->rows = rows;
  const size_t bytes = static_cast<size_t>(rows) * call.row_bytes();
  if (call.output != nullptr || bytes == 0) return static_cast<std::byte*>(call.output);
  Status why;
  call.result->made_output = heap_.Allocate(bytes, /*zeroed=*/false, &why);
  if (call.result->made_output == nullptr) return why;
  return static_cast<std::byte*>(call.result->made_output);
}

Result<bool> InprocBackend::Start(const CollectiveCall& call, OpState*, const MemberInputs& parts) {
  Status done;
  switch (call.collective) {
    case Collective::kAllreduce:
      done = Reduce(call, parts, 0, call.count, static_cast<std::byte*>(call.output));
      break;
    case Collective::kBroadcast:
      Copy(static_cast<std::byte*>(call.output), parts.descriptors[call.root].payload.data(),
           call.bytes());
      break;
    case Collective::kAllgather: done = Allgather(call, parts); break;
    case Collective::kAlltoall: done = Alltoall(call, parts); break;
    case Collective::kReducescatter: done = Reducescatter(call, parts); break;
    default: break;
  }
  if (!done.ok()) return done;
  return true;
}

Status InprocBackend::Allgather(const CollectiveCall& call, const MemberInputs& parts) {
  int64_t rows = 0;
  for (const Extent& extent : parts.extents) rows += extent.rows;
  Result<std::byte*> out = OutputOf(call, rows);
  if (!out.ok()) return out.status();
  std::byte* at = *out;
  for (const BufferDescriptor& descriptor : parts.descriptors) {
    Copy(at, descriptor.payload.data(), descriptor.payload.size());
    at += descriptor.payload.size();
  }
  return Status::Ok();
}

Status InprocBackend::Alltoall(const CollectiveCall& call, const MemberInputs& parts) {
  const uint32_t self = call.group->index;
  std::vector<int64_t>& received = call.result->received_splits;
  received.clear();
  int64_t rows = 0;
  for (const Extent& extent : parts.extents) {
    received.push_back(extent.splits[self]);
    rows += received.back();
  }
  Result<std::byte*> out = OutputOf(call, rows);
  if (!out.ok()) return out.status();
  std::byte* at = *out;
  for (size_t i = 0; i < parts.descriptors.size(); ++i) {
    int64_t before = 0;
    for (uint32_t member = 0; member < self; ++member) before += parts.extents[i].splits[member];
    const size_t bytes = static_cast<size_t>(received[i]) * call.row_bytes();
    Copy(at, parts.descriptors[i].payload.data() + static_cast<size_t>(before) * call.row_bytes(),
         bytes);
    at += bytes;
  }
  return Status::Ok();
}

// The first members get one row more where the rows do not divide.
Status InprocBackend::Reducescatter(const CollectiveCall& call, const MemberInputs& parts) {
  const int64_t members = call.group->size(), self = call.group->index;
  const int64_t each = call.rows / members, more = call.rows % members;
  const int64_t first = self * each + std::min(self, more);
  const int64_t rows = each + (self < more ? 1 : 0);
  Result<std::byte*> out = OutputOf(call, rows);
  if (!out.ok()) return out.status();
  return Reduce(call, parts, static_cast<size_t>(first) * call.row_count,
                static_cast<size_t>(rows) * call.row_count, *out);
}

Result<bool> InprocBackend::Advance(const CollectiveCall&, OpState*) { return true; }

}  // namespace hvd
