#include "runtime/backends/cuda/nvtx/nvtx_ranges.h"

#include <dlfcn.h>

#include <array>

#include "runtime/base/loading/library_dir.h"

namespace hvd {
namespace {

constexpr char kNoRanges[] = "no NVTX ranges are shown because ";
constexpr unsigned kMostSlots = 16;

// Where the profiler's library stores its functions, per module, for the life of the process. One
// entry more than there are slots, since tables end with a null.
struct Slots {
  std::array<nvtx::Function, kMostSlots> functions{};
  std::array<nvtx::Function*, kMostSlots + 1> table{};
};
std::array<Slots, nvtx::kModules>& TheSlots() {
  static auto* slots = new std::array<Slots, nvtx::kModules>;
  return *slots;
}

int GetModuleFunctionTable(int module, nvtx::FunctionTable* table, unsigned* slots) {
  if (module < nvtx::kCore || module >= nvtx::kModules) return 0;
  Slots& place = TheSlots()[static_cast<size_t>(module)];
  const unsigned count = nvtx::kSlots[module];
  for (unsigned i = 1; i < count; ++i) place.table[i] = &place.functions[i];
  if (slots != nullptr) *slots = count;
  if (table != nullptr) *table = place.table.data();
  return 1;
}

void SetInjectionVersion(uint32_t) {}

const void* GetExportTable(uint32_t table) {
  static const nvtx::CallbacksTable kCallbacks = {sizeof(nvtx::CallbacksTable),
                                                  GetModuleFunctionTable};
  static const nvtx::VersionTable kVersions = {sizeof(nvtx::VersionTable), nvtx::kVersion, 0,
                                               SetInjectionVersion};
  if (table == nvtx::kCallbacksTable) return &kCallbacks;
  return table == nvtx::kVersionTable ? &kVersions : nullptr;
}

Status Initialize(const std::string& injection) {
  if (injection.empty()) {
    return Unsupported(kNoRanges + std::string("there is no profiler: it sets ") +
                       nvtx::kInjectionVariable + "; run hvdrun below nsys profile");
  }
  void* library = ::dlopen(injection.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    return Unsupported(kNoRanges + std::string("the profiler's library cannot be loaded: ") +
                       LoaderError());
  auto initialize =
      reinterpret_cast<nvtx::InitializeInjection>(::dlsym(library, nvtx::kInjectionEntry));
  if (initialize == nullptr)
    return Unsupported(kNoRanges + injection + " has no " + nvtx::kInjectionEntry);
  if (initialize(GetExportTable) != 0) return Status::Ok();
  return Unsupported(kNoRanges + injection + " does not take part");
}

// Null if the profiler has stored nothing.
template <typename Type>
Type FunctionIn(unsigned slot) {
  return reinterpret_cast<Type>(TheSlots()[nvtx::kCore2].functions[slot]);
}

}  // namespace

Result<NvtxRanges> NvtxRanges::Load(const std::string& injection) {
  HVD_RETURN_IF_ERROR(Initialize(injection));
  NvtxRanges ranges;
  ranges.start_ = FunctionIn<nvtx::DomainRangeStart>(nvtx::kDomainRangeStartEx);
  ranges.end_ = FunctionIn<nvtx::DomainRangeEnd>(nvtx::kDomainRangeEnd);
  if (ranges.start_ == nullptr || ranges.end_ == nullptr)
    return Unsupported(kNoRanges + injection + " takes no ranges of domains");
  auto create = FunctionIn<nvtx::DomainCreate>(nvtx::kDomainCreateA);
  if (create != nullptr) ranges.domain_ = create("hvdrun");
  return ranges;
}

Result<const NvtxRanges*> NvtxRanges::Meet(const std::string& injection) {
  static const auto* met = new Result<NvtxRanges>(Load(injection));
  if (!met->ok()) return met->status();
  return &**met;
}

nvtx::RangeId NvtxRanges::Start(const char* text, uint64_t payload) const {
  nvtx::EventAttributes attributes;
  attributes.payload = payload;
  attributes.message = text;
  return start_(domain_, &attributes);
}

void NvtxRanges::End(nvtx::RangeId range) const { end_(domain_, range); }

}  // namespace hvd
