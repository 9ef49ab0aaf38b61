#include "launcher/channels/bundle/bundle.h"

#include <elf.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "configs/message_text.h"
#include "launcher/channels/bundle/install_paths.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest, &size, ::EVP_sha256(), nullptr) != 1)
    size = 0;
  return HexOf(std::string_view(reinterpret_cast<const char*>(digest), size));
}

namespace {

// `count` bytes at `offset`, if all of them exist.
std::optional<std::string_view> Part(std::string_view bytes, uint64_t offset, uint64_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, count);
}

template <typename T>
std::optional<T> At(std::string_view bytes, uint64_t offset) {
  std::optional<std::string_view> part = Part(bytes, offset, sizeof(T));
  if (!part) return std::nullopt;
  T value;
  std::memcpy(&value, part->data(), sizeof value);
  return value;
}

constexpr uint64_t Padded(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

// The build id in a segment of notes; empty if there is none.
std::string BuildIdIn(std::string_view notes) {
  constexpr std::string_view kOwner("GNU\0", 4);
  while (std::optional<Elf64_Nhdr> note = At<Elf64_Nhdr>(notes, 0)) {
    const uint64_t text_at = sizeof *note + Padded(note->n_namesz);
    std::optional<std::string_view> owner = Part(notes, sizeof *note, note->n_namesz);
    std::optional<std::string_view> text = Part(notes, text_at, note->n_descsz);
    if (!owner || !text) return "";
    if (note->n_type == NT_GNU_BUILD_ID && *owner == kOwner) return HexOf(*text);
    notes.remove_prefix(std::min<uint64_t>(notes.size(), text_at + Padded(note->n_descsz)));
  }
  return "";
}

}  // namespace

Result<std::string> ElfBuildId(std::string_view bytes) {
  std::optional<Elf64_Ehdr> header = At<Elf64_Ehdr>(bytes, 0);
  if (!header || !bytes.starts_with(std::string_view(ELFMAG, SELFMAG)) ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
      header->e_phnum == 0) {
    return InvalidArgument("it is no program of 64 bits");
  }
  std::string build_id;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    std::optional<Elf64_Phdr> segment =
        At<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || !Part(bytes, segment->p_offset, segment->p_filesz))
      return InvalidArgument("it is cut off");
    if (segment->p_type == PT_NOTE && build_id.empty())
      build_id = BuildIdIn(bytes.substr(segment->p_offset, segment->p_filesz));
  }
  return build_id;
}

namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 32;
constexpr const char* kProgram = "bin/hvdrun";
constexpr const char* kStacks = "bin/py-spy";  // pip puts it there with hvdrun[stacks]
const std::string kLibraries = HVD_LIBDIR "/";
const std::string kPackage = kLibraries + "hvdrun/python/horovod/";
constexpr const char* kLibrariesOfWheel = "lib/";    // in its package
constexpr const char* kTime = "--mtime=@315532800";  // 1980: tar warns about earlier times

struct BundledFile {
  std::string path;  // in the bundle, whose layout is that of an installed tree
  std::string folder;
  std::string name;  // in the folder
  std::string from() const { return folder + "/" + name; }
};

// A memory-mapped file; pages that are not read are not loaded.
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

// Sorted by name, so that equal installations have equal bundles.
Result<std::vector<BundledFile>> FilesOf(const std::string& executable) {
  const InstallPaths paths = PathsBeside(executable);
  const fs::path program = executable;
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  std::vector<BundledFile> files = {{kProgram, program.parent_path(), program.filename()}};
  const fs::path stacks = program.parent_path() / fs::path(kStacks).filename();
  std::error_code none;
  if (fs::is_regular_file(stacks, none))
    files.push_back({kStacks, stacks.parent_path(), stacks.filename()});
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(libraries)) {
      std::string name = entry.path().filename();
      if (name.starts_with("libhvd") && name.ends_with(".so"))
        files.push_back({kLibraries + name, libraries, name});
    }
    const fs::path package = PackageSources(paths);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
             package, fs::directory_options::follow_directory_symlink)) {
      const std::string name = entry.path().lexically_relative(package).generic_string();
      if (entry.path().extension() != ".py" || name.starts_with(kLibrariesOfWheel)) continue;
      files.push_back({kPackage + name, package, name});
    }
  } catch (const fs::filesystem_error& failure) {
    return InvalidArgument("the files beside " + Printable(executable, kMaxShownPath) +
                           " cannot be listed: " + failure.code().message());
  }
  std::sort(files.begin(), files.end(),
            [](const BundledFile& a, const BundledFile& b) { return a.path < b.path; });
  return files;
}

// The identity that distinguishes this file from that of another build.
Result<std::string> NameOf(const BundledFile& file) {
  MappedFile mapped(file.from());
  if (mapped.error() != 0)
    return SystemError(Printable(file.from(), kMaxShownPath) + " cannot be read", mapped.error());
  if (file.path.ends_with(".py")) return Sha256Hex(mapped.bytes());
  // It has no build id, and hashing it would take longer than everything else.
  if (file.path == kStacks) return std::to_string(mapped.bytes().size());
  Result<std::string> build_id = ElfBuildId(mapped.bytes());
  if (!build_id.ok())
    return InvalidArgument(Printable(file.from(), kMaxShownPath) +
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
  // All files are named relative to three folders, wherever those are.
  argv.push_back("--transform=s,^," + kPackage + ",;s,^" + kPackage + "hvdrun$," + kProgram +
                 ",;s,^" + kPackage + "py-spy$," + kStacks + ",;s,^" + kPackage +
                 "\\(libhvd[^/]*\\.so\\)$," + kLibraries + "\\1,");
  std::string folder;
  for (const BundledFile& file : *files) {
    if (file.folder != folder) argv.push_back("--directory=" + (folder = file.folder));
    argv.push_back(file.name);
  }
  return argv;
}

}  // namespace hvd
