// A profiler's library as NVTX loads it, without a profiler: it writes a line for each range that
// ends into a text, and into the file FAKE_NVTX_FILE where that is set. See README.md.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "runtime/backends/cuda/nvtx/nvtx_protocol.h"

namespace {

using hvd::nvtx::Domain;
using hvd::nvtx::EventAttributes;
using hvd::nvtx::RangeId;

// Never destroyed, since threads outlive static destructors.
struct Profile {
  std::mutex mutex;
  std::string domain, text;
  std::map<RangeId, std::string> open;
  RangeId last = 0;
};
Profile& TheProfile() {
  static auto* profile = new Profile;
  return *profile;
}

Domain CreateDomain(const char* name) {
  TheProfile().domain = name;
  return reinterpret_cast<Domain>(&TheProfile());
}

RangeId StartRange(Domain domain, const EventAttributes* attributes) {
  Profile& profile = TheProfile();
  std::lock_guard lock(profile.mutex);
  const bool right = reinterpret_cast<Profile*>(domain) == &profile &&
                     attributes->size == sizeof(EventAttributes) && attributes->version == 3;
  profile.open[++profile.last] =
      right ? profile.domain + " " + attributes->message + " " + std::to_string(attributes->payload)
            : "WRONG";
  return profile.last;
}

void EndRange(Domain, RangeId range) {
  Profile& profile = TheProfile();
  std::lock_guard lock(profile.mutex);
  const auto found = profile.open.find(range);
  const std::string line = (found == profile.open.end() ? "ENDED TWICE" : found->second) + "\n";
  if (found != profile.open.end()) profile.open.erase(found);
  profile.text += line;
  const char* path = std::getenv("FAKE_NVTX_FILE");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    hvd::nvtx::GetExportTable get_export_table) {
  if (std::getenv("FAKE_NVTX_REFUSES") != nullptr) return 0;
  const auto* callbacks =
      static_cast<const hvd::nvtx::CallbacksTable*>(get_export_table(hvd::nvtx::kCallbacksTable));
  const auto* versions =
      static_cast<const hvd::nvtx::VersionTable*>(get_export_table(hvd::nvtx::kVersionTable));
  if (callbacks == nullptr || versions == nullptr || get_export_table(77) != nullptr) return 0;
  versions->set_injection_version(3);
  // As profilers do: all modules, and whatever they know of each.
  for (int module = hvd::nvtx::kCore; module < hvd::nvtx::kModules; ++module) {
    hvd::nvtx::FunctionTable table = nullptr;
    unsigned slots = 0;
    if (callbacks->get_module_function_table(module, &table, &slots) == 0) return 0;
    if (slots != hvd::nvtx::kSlots[module]) return 0;
    for (unsigned slot = 1; slot < slots; ++slot) *table[slot] = nullptr;
    if (module != hvd::nvtx::kCore2) continue;
    *table[hvd::nvtx::kDomainCreateA] = reinterpret_cast<hvd::nvtx::Function>(CreateDomain);
    *table[hvd::nvtx::kDomainRangeStartEx] = reinterpret_cast<hvd::nvtx::Function>(StartRange);
    *table[hvd::nvtx::kDomainRangeEnd] = reinterpret_cast<hvd::nvtx::Function>(EndRange);
  }
  return 1;
}

// The ranges that have ended since the last time, and how many have not.
extern "C" __attribute__((visibility("default"))) const char* fake_nvtx_take(unsigned* open) {
  static std::string taken;
  Profile& profile = TheProfile();
  std::lock_guard lock(profile.mutex);
  taken = std::move(profile.text);
  profile.text.clear();
  *open = static_cast<unsigned>(profile.open.size());
  return taken.c_str();
}
