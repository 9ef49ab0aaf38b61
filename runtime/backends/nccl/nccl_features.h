// NCCL features beyond the oldest supported version, by its version and the symbols that it
// actually has. Pure functions.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_FEATURES_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_FEATURES_H_

#include <string>
#include <string_view>

#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/base/status.h"

namespace hvd {

enum class NcclFeature {
  kRegister,  // buffers that NCCL moves without copies of its own
  kAllocate,  // memory best suited for that
  kFloat8,    // as a reduction type
};
inline constexpr int kNcclFeatureCount = 3;

// "registered buffers"
std::string_view NameOf(NcclFeature feature);
// As from ncclGetVersion: 21901 for 2.19.1.
int FirstVersionWith(NcclFeature feature);

// Ok, or kUnsupported: the version is older than the feature, or lacks the named symbols.
Status CheckNcclFeature(const NcclLibrary& library, NcclFeature feature);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_FEATURES_H_
