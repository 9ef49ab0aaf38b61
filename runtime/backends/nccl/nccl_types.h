// Maps a reduction to NCCL: its type, its operation, and the work left to the batched kernel before
// and after. Pure functions.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_TYPES_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_TYPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/backends/collective.h"
#include "runtime/backends/nccl/nccl_api.h"
#include "runtime/base/status.h"
#include "runtime/device/dtype.h"

namespace hvd {

// What determines the supported types: the version of NCCL (22809 for 2.28.9), and the members'
// lowest compute capability (90 for sm_90), so that all members decide alike.
struct NcclAbilities {
  int version = 0;
  int compute_capability = 0;
};

struct NcclReduction {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  double prescale = 1.0;
  double postscale = 1.0;
  uint32_t size = 1;    // members of the process set
  uint32_t active = 1;  // of these, members that have not joined
};

struct NcclReductionSteps {
  NcclDataType type = kNcclFloat32;
  NcclReduceOp op = kNcclSum;          // unused with `pre_multiply`
  std::optional<double> pre_multiply;  // a sum of the inputs times this: ncclRedOpCreatePreMulSum
  double before = 1.0;                 // factors of the batched kernel, for inputs and results
  double after = 1.0;
};

// For a sum or average of float32 or float64, NCCL's own kernel applies every factor; for float16
// and bfloat16 if the factor is exact in their type; otherwise, and for float8, the batched kernel
// scales in float32. Their postscale is applied after the sum, since the caller may need its range.
// kUnsupported with the reason: Adasum, a type that NCCL does not reduce, a scale or an average of
// integers, which NCCL would add in their own type.
Result<NcclReductionSteps> StepsOfReduction(const NcclReduction& reduction,
                                            const NcclAbilities& abilities);

// True if `value` is one of the type's normal numbers: float16, bfloat16, float32, float64.
bool HasExactly(DType dtype, double value);
// The bytes of the number in that type, as for ncclRedOpCreatePreMulSum. float32 rounds; float16
// and bfloat16 need HasExactly.
std::array<std::byte, 8> ScalarBytes(DType dtype, double value);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_TYPES_H_
