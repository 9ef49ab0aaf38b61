#include "launcher/bundle/bundle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "configs/message_text.h"
#include "launcher/bundle/elf_file.h"
#include "launcher/bundle/install_paths.h"
#include "launcher/bundle/packing.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 32;
constexpr const char* kTime = "--mtime=@315532800";  // 1980: tar warns of earlier files

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

// The name that tells this file from that of another build.
Result<std::string> NameOf(const BundledFile& file) {
  MappedFile mapped(file.from);
  if (mapped.error() != 0)
    return SystemError(Printable(file.from, kMaxShownPath) + " cannot be read", mapped.error());
  if (file.path.ends_with(".py")) return Sha256Hex(mapped.bytes());
  Result<std::string> build_id = ElfBuildId(mapped.bytes());
  if (!build_id.ok())
    return InvalidArgument(Printable(file.from, kMaxShownPath) +
                           " is not what it was built as: " + build_id.status().message());
  return build_id->empty() ? Sha256Hex(mapped.bytes()) : *build_id;
}

}  // namespace

Result<std::string> InstalledBuildId(const std::string& executable) {
  Result<std::vector<BundledFile>> files = FilesOf(executable);
  if (!files.ok()) return files.status();
  std::string list;
  for (const BundledFile& file : *files) {
    Result<std::string> name = NameOf(file);
    if (!name.ok()) return name.status();
    list += file.path + " " + *name + "\n";
  }
  return Sha256Hex(list).substr(0, kIdDigits);
}

Result<std::vector<std::string>> BundleCommand(const std::string& executable, Packing packing) {
  Result<std::vector<BundledFile>> files = FilesOf(executable);
  if (!files.ok()) return files.status();
  std::vector<std::string> argv = {"tar", "--create", "--file=-"};
  if (packing == Packing::kGzip) argv.push_back("--use-compress-program=gzip -n -3");
  // Equal installations have equal bundles.
  argv.insert(argv.end(), {"--format=ustar", "--dereference", "--sort=name", kTime, "--owner=0",
                           "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"});
  argv.push_back("--directory=" + fs::path(executable).parent_path().parent_path().string());
  argv.push_back("--");
  for (const BundledFile& file : *files) argv.push_back(file.path);
  return argv;
}

}  // namespace hvd
