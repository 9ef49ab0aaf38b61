#include "runtime/backends/nccl/nccl_types.h"

#include <cmath>
#include <cstring>
#include <string>

#include "runtime/backends/nccl/nccl_features.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kFirstWithFloat8Sums = 90;  // compute capability

bool IsFloat8(DType dtype) { return dtype == DType::kFloat8E4m3 || dtype == DType::kFloat8E5m2; }
bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }
bool IsWide(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

std::optional<NcclDataType> TypeForNccl(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kBool: return kNcclUint8;
    case DType::kInt8: return kNcclInt8;
    case DType::kInt32: return kNcclInt32;
    case DType::kInt64: return kNcclInt64;
    case DType::kFloat16: return kNcclFloat16;
    case DType::kFloat32: return kNcclFloat32;
    case DType::kFloat64: return kNcclFloat64;
    case DType::kBfloat16: return kNcclBfloat16;
    case DType::kFloat8E4m3: return kNcclFloat8E4m3;
    case DType::kFloat8E5m2: return kNcclFloat8E5m2;
    case DType::kUint16:
    case DType::kInt16:
    case DType::kInt128: return std::nullopt;
  }
  return std::nullopt;
}

Status CheckType(DType dtype, const NcclAbilities& abilities) {
  const std::string name(NameOf(dtype));
  if (!TypeForNccl(dtype).has_value()) {
    return Unsupported("NCCL does not reduce " + name +
                       ": convert it to int32, or reduce it on "
                       "the CPU");
  }
  if (!IsFloat8(dtype)) return Status::Ok();
  const int first = FirstVersionWith(NcclFeature::kFloat8);
  if (abilities.version < first) {
    return Unsupported("NCCL " + NcclVersionText(abilities.version) + " does not reduce " + name +
                       ": install " + NcclVersionText(first) +
                       " or newer, or convert it to float16");
  }
  if (abilities.compute_capability >= kFirstWithFloat8Sums) return Status::Ok();
  return Unsupported(
      Format("NCCL reduces {} on GPUs from sm_90 on, and a member has sm_{}: convert it to float16",
             name, abilities.compute_capability));
}

// 1 if nothing is divided.
double DivisorFor(const NcclReduction& reduction) {
  return DivisorOf(reduction.op, reduction.size, reduction.active);
}

Status CheckFactors(const NcclReduction& reduction) {
  if (IsWide(reduction.dtype) || IsHalf(reduction.dtype)) return Status::Ok();
  if (IsFloat8(reduction.dtype)) return Status::Ok();
  const std::string name(NameOf(reduction.dtype));
  if (reduction.prescale != 1.0 || reduction.postscale != 1.0) {
    return Unsupported("a GPU does not scale " + name +
                       ": convert it to float32, or leave out "
                       "prescale and postscale");
  }
  if (DivisorFor(reduction) == 1.0) return Status::Ok();
  if (reduction.dtype == DType::kBool) return Unsupported("there is no average of bool");
  return Unsupported(
      Format("NCCL adds {} in {}, where the sum of an average may overflow: convert it to float32",
             name, name));
}

// Booleans are bytes 0 and 1.
NcclReduceOp OpOfBool(ReduceOp op) {
  return op == ReduceOp::kMin || op == ReduceOp::kProduct ? kNcclMin : kNcclMax;
}

void PlaceFactorsOfWideSum(const NcclReduction& reduction, NcclReductionSteps& steps) {
  const double divisor = DivisorFor(reduction);
  const double scale = reduction.prescale * reduction.postscale;
  if (scale == 1.0 && divisor == 1.0) return;
  if (scale == 1.0 && divisor == reduction.size) {
    steps.op = kNcclAverage;
  } else {
    steps.pre_multiply = scale / divisor;
  }
}

void PlaceFactorsOfNarrowSum(const NcclReduction& reduction, NcclReductionSteps& steps) {
  const double divisor = DivisorFor(reduction);
  steps.after = reduction.postscale;
  if (reduction.prescale == 1.0 && divisor == 1.0) return;
  if (reduction.prescale == 1.0 && divisor == reduction.size) {
    steps.op = kNcclAverage;
  } else if (IsHalf(reduction.dtype) && HasExactly(reduction.dtype, reduction.prescale / divisor)) {
    steps.pre_multiply = reduction.prescale / divisor;
  } else {
    steps.before = reduction.prescale / divisor;
  }
}

}  // namespace

Result<NcclReductionSteps> StepsOfReduction(const NcclReduction& reduction,
                                            const NcclAbilities& abilities) {
  if (reduction.op == ReduceOp::kAdasum) {
    return Unsupported("NCCL has no reduction for Adasum, which is an allreduce of its own");
  }
  HVD_RETURN_IF_ERROR(CheckType(reduction.dtype, abilities));
  HVD_RETURN_IF_ERROR(CheckFactors(reduction));
  NcclReductionSteps steps{.type = *TypeForNccl(reduction.dtype)};
  if (reduction.dtype == DType::kBool) {
    steps.op = OpOfBool(reduction.op);
    return steps;
  }
  const bool sum = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kAverage ||
                   reduction.op == ReduceOp::kActiveAverage;
  if (sum && IsWide(reduction.dtype)) {
    PlaceFactorsOfWideSum(reduction, steps);
  } else if (sum) {
    PlaceFactorsOfNarrowSum(reduction, steps);  // those of integers are 1
  } else {
    steps.op = reduction.op == ReduceOp::kMin   ? kNcclMin
               : reduction.op == ReduceOp::kMax ? kNcclMax
                                                : kNcclProduct;
    steps.before = reduction.prescale;
    steps.after = reduction.postscale;
  }
  return steps;
}

bool HasExactly(DType dtype, double value) {
  if (!std::isfinite(value) || value == 0) return value == 0;
  if (dtype == DType::kFloat64) return true;
  if (dtype == DType::kFloat32) return static_cast<double>(static_cast<float>(value)) == value;
  const int digits = dtype == DType::kFloat16 ? 11 : 8;
  const int least = dtype == DType::kFloat16 ? -14 : -126,
            most = dtype == DType::kFloat16 ? 15 : 127;
  int exponent = 0;
  const double scaled =
      std::ldexp(std::frexp(value, &exponent), digits);  // 0.5 to 1, times 2^digits
  return scaled == std::trunc(scaled) && exponent - 1 >= least && exponent - 1 <= most;
}

std::array<std::byte, 8> ScalarBytes(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
  if (dtype == DType::kFloat64) {
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
  }
  const auto single = static_cast<float>(value);
  uint32_t word = 0;
  std::memcpy(&word, &single, sizeof(word));
  if (dtype == DType::kBfloat16) word >>= 16;
  if (dtype == DType::kFloat16 && value != 0) {
    const uint32_t exponent = (word >> 23 & 0xff) - 127 + 15;
    word = (word >> 16 & 0x8000) | exponent << 10 | (word >> 13 & 0x3ff);
  }
  std::memcpy(bytes.data(), &word, sizeof(word));
  return bytes;
}

}  // namespace hvd
