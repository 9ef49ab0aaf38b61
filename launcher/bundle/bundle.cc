#include "launcher/bundle/bundle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "launcher/bundle/elf_file.h"
#include "launcher/bundle/install_paths.h"
#include "launcher/bundle/packing.h"
#include "launcher/bundle/tar_archive.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 32;
constexpr uint32_t kProgramMode = 0755, kFileMode = 0644;

struct BundledFile {
  std::string path;  // in the bundle, which is laid out as an installation is
  std::string from;
};

// A file in memory while it is looked at; pages that nobody looks at are not read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts {};
    if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) {
      error_ = errno;
      return;
    }
    size_ = static_cast<size_t>(facts.st_size);
    if (size_ == 0) return;
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at == MAP_FAILED) {
      error_ = errno;
    } else {
      at_ = at;
    }
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (at_ != nullptr) ::munmap(at_, size_);
  }

  int error() const { return error_; }
  std::string_view bytes() const {
    return at_ == nullptr ? std::string_view() : std::string_view(static_cast<char*>(at_), size_);
  }

 private:
  void* at_ = nullptr;
  size_t size_ = 0;
  int error_ = 0;
};

// In the order of their names, so that equal installations have equal bundles.
Result<std::vector<BundledFile>> FilesOf(const std::string& executable) {
  const InstallPaths paths = PathsBeside(executable);
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  std::vector<BundledFile> files = {{"bin/hvdrun", executable}};
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(libraries)) {
      std::string name = entry.path().filename();
      if (name.starts_with("libhvd") && name.ends_with(".so"))
        files.push_back({HVD_LIBDIR "/" + name, entry.path()});
    }
    const fs::path package = fs::path(paths.python) / "horovod";
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
             package, fs::directory_options::follow_directory_symlink)) {
      if (entry.path().extension() != ".py") continue;
      files.push_back({HVD_LIBDIR "/hvdrun/python/horovod/" +
                           entry.path().lexically_relative(package).generic_string(),
                       entry.path()});
    }
  } catch (const fs::filesystem_error& failure) {
    return InvalidArgument("the files beside " + Printable(executable, kMaxShownPath) +
                           " cannot be listed: " + failure.code().message());
  }
  std::sort(files.begin(), files.end(),
            [](const BundledFile& a, const BundledFile& b) { return a.path < b.path; });
  return files;
}

// Calls `take` with each file's bytes and, for programs and libraries, what is known of them.
Status ForEachFile(const std::string& executable,
                   const std::function<Status(const BundledFile&, std::string_view bytes,
                                              const ElfFacts* facts)>& take) {
  Result<std::vector<BundledFile>> files = FilesOf(executable);
  if (!files.ok()) return files.status();
  for (const BundledFile& file : *files) {
    MappedFile mapped(file.from);
    if (mapped.error() != 0)
      return SystemError(Printable(file.from, kMaxShownPath) + " cannot be read", mapped.error());
    if (file.path.ends_with(".py")) {
      if (Status status = take(file, mapped.bytes(), nullptr); !status.ok()) return status;
      continue;
    }
    Result<ElfFacts> facts = ReadElf(mapped.bytes());
    if (!facts.ok())
      return InvalidArgument(Printable(file.from, kMaxShownPath) +
                             " is not what it was built as: " + facts.status().message());
    if (Status status = take(file, mapped.bytes(), &*facts); !status.ok()) return status;
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> InstalledBuildId(const std::string& executable) {
  std::string list;
  Status status = ForEachFile(
      executable, [&](const BundledFile& file, std::string_view bytes, const ElfFacts* facts) {
        std::string name = facts == nullptr          ? Sha256Hex(bytes)
                           : facts->build_id.empty() ? Sha256Hex(StrippedElf(bytes, *facts))
                                                     : facts->build_id;
        list += file.path + " " + name + "\n";
        return Status::Ok();
      });
  if (!status.ok()) return status;
  return Sha256Hex(list).substr(0, kIdDigits);
}

Result<Bundle> MakeBundle(const std::string& executable, Packing packing) {
  TarArchive archive;
  Status status = ForEachFile(
      executable, [&](const BundledFile& file, std::string_view bytes, const ElfFacts* facts) {
        if (facts == nullptr) return archive.Add(file.path, kFileMode, bytes);
        return archive.Add(file.path, kProgramMode, StrippedElf(bytes, *facts));
      });
  if (!status.ok()) return status;
  Bundle bundle{archive.Take(), ""};
  if (packing == Packing::kGzip) {
    Result<std::string> packed = Gzip(bundle.bytes);
    if (!packed.ok()) return packed.status();
    bundle.bytes = std::move(*packed);
  }
  bundle.sha256 = Sha256Hex(bundle.bytes);
  return bundle;
}

}  // namespace hvd
