#include "runtime/backends/nccl/nccl_loader.h"

#include <dlfcn.h>

#include "runtime/base/loading/library_dir.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr char kUnusable[] = "NCCL cannot be used because ";

// The file that contains an entry; `name` if unknown.
std::string PathOf(void* entry, const std::string& name) {
  Dl_info info{};
  if (entry == nullptr || ::dladdr(entry, &info) == 0 || info.dli_fname == nullptr) return name;
  return info.dli_fname;
}

// A symbol that an older version happens to have is not used: it may mean something else there.
void FillOptional(NcclLibrary& library, const FindSymbol& find) {
  EntryFiller fill(find);
  ForEachOptionalEntry(library.api, [&](auto& entry, int since) {
    if (library.version >= since) fill(entry);
  });
}

}  // namespace

std::string NcclVersionText(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  return Format("{}.{}.{}", major, minor, version % 100);
}

Status CheckNcclVersion(int version, const std::string& path) {
  if (version >= kOldestNccl && version < kNcclOfAnotherKind) return Status::Ok();
  const bool old = version < kOldestNccl;
  return Unsupported(kUnusable + path + " is version " + NcclVersionText(version) +
                     (old ? ": install " + NcclVersionText(kOldestNccl) + " or newer"
                          : ", which this hvdrun does not know: install a 2.x"));
}

Result<NcclLibrary> FillNccl(const std::string& path, const FindSymbol& find) {
  NcclLibrary library;
  library.path = path;
  EntryFiller version_only(find);
  version_only(library.api.get_version);
  if (!library.api.get_version) {
    return Unsupported(kUnusable + path + " has no " + version_only.missing() + ": it is no NCCL");
  }
  if (NcclResult result = library.api.get_version(&library.version); result != kNcclSuccess) {
    return Unsupported(Format("{}{} does not tell its version: error {}", kUnusable, path, result));
  }
  HVD_RETURN_IF_ERROR(CheckNcclVersion(library.version, path));
  EntryFiller fill(find);
  ForEachEntry(library.api, fill);
  if (fill.missing().empty()) {
    FillOptional(library, find);
    return library;
  }
  return Unsupported(kUnusable + path + " of version " + NcclVersionText(library.version) +
                     " has no " + fill.missing());
}

Result<NcclLibrary> LoadNccl(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const bool shared = handle != nullptr;
  if (!shared) {
    ::dlerror();
    handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    return Unsupported(kUnusable + name + " cannot be loaded: " + LoaderError() +
                       "; frameworks with CUDA bring it, and NVIDIA's packages have it (libnccl2)");
  }
  auto find = [handle](const char* symbol) { return ::dlsym(handle, symbol); };
  Result<NcclLibrary> library = FillNccl(PathOf(find("ncclGetVersion"), name), find);
  if (library.ok()) library->shared = shared;
  return library;
}

}  // namespace hvd
