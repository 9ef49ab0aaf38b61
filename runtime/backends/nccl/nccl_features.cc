#include "runtime/backends/nccl/nccl_features.h"

namespace hvd {
namespace {

void NoteIfMissing(const auto& entry, std::string& missing) {
  if (!entry) missing += (missing.empty() ? "" : ", ") + std::string(entry.symbol);
}

std::string MissingSymbols(const NcclApi& api, NcclFeature feature) {
  std::string missing;
  switch (feature) {
    case NcclFeature::kRegister:
      NoteIfMissing(api.comm_register, missing);
      NoteIfMissing(api.comm_deregister, missing);
      break;
    case NcclFeature::kAllocate:
      NoteIfMissing(api.mem_alloc, missing);
      NoteIfMissing(api.mem_free, missing);
      break;
    case NcclFeature::kFloat8: break;
  }
  return missing;
}

}  // namespace

std::string_view NameOf(NcclFeature feature) {
  switch (feature) {
    case NcclFeature::kRegister: return "registered buffers";
    case NcclFeature::kAllocate: return "memory of its own";
    case NcclFeature::kFloat8: return "reductions of float8";
  }
  return "";
}

int FirstVersionWith(NcclFeature feature) {
  switch (feature) {
    case NcclFeature::kRegister:
    case NcclFeature::kAllocate: return 21901;
    case NcclFeature::kFloat8: return 22403;
  }
  return kNcclOfAnotherKind;
}

Status CheckNcclFeature(const NcclLibrary& library, NcclFeature feature) {
  const std::string who = "NCCL " + NcclVersionText(library.version) + " (" + library.path + ")";
  if (library.version < FirstVersionWith(feature)) {
    return Unsupported(who + " has no " + std::string(NameOf(feature)) + ": they came with " +
                       NcclVersionText(FirstVersionWith(feature)));
  }
  const std::string missing = MissingSymbols(library.api, feature);
  if (missing.empty()) return Status::Ok();
  return Unsupported(who + " has no " + std::string(NameOf(feature)) + " because it lacks " +
                     missing);
}

}  // namespace hvd
