#include "runtime/segment/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/kernel_features.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// To the kernel, shared memory is a file.
Status SizeError(const std::string& what, int error) {
  if (error != EFBIG) return SystemError(what, error);
  return Internal(SystemError(what, error).message() +
                  "; the limit of file sizes (ulimit -f) also holds for shared memory, raise it");
}

}  // namespace

Result<UniqueFd> CreateUnlinkedFile(size_t bytes) {
  std::string directory = GetEnv("TMPDIR").value_or("/tmp");
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
  if (!fd.valid()) {
    // Not every file system supports O_TMPFILE; otherwise the name exists for a moment.
    std::string path = directory + "/hvd-XXXXXX";
    fd.Reset(::mkostemp(path.data(), O_CLOEXEC));
    if (fd.valid()) ::unlink(path.c_str());
  }
  if (!fd.valid()) return SystemError("creating an unlinked file in " + directory, errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return SizeError("sizing an unlinked file in " + directory, errno);
  }
  return fd;
}

Result<UniqueFd> CreateSharedMemory(const char* label, size_t bytes) {
  UniqueFd fd;
  if (!Without("memfd")) fd.Reset(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return CreateUnlinkedFile(bytes);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return SizeError(Format("sizing a memfd to {} bytes", bytes), errno);
  }
  return fd;
}

Status ReservePages(int fd, size_t bytes) {
  int error = 0;
  do {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) {
    return SizeError(Format("reserving {} bytes of shared memory", bytes), error);
  }
  return Status::Ok();
}

Status SealSize(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) return Status::Ok();
  const int error = errno;
  if (error == EINVAL) return Status::Ok();  // not a memfd: an unlinked file has no seals
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (error == EPERM && seals == F_SEAL_SEAL)
    return Status::Ok();  // an unlinked file of tmpfs: never sealable
  return SystemError("sealing shared memory", error);
}

Result<Mapping> Mapping::Map(int fd, size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return SystemError(Format("mapping {} bytes of shared memory", bytes), errno);
  }
  return Mapping(static_cast<std::byte*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

bool Mapping::Contains(const void* p, size_t bytes) const {
  auto begin = reinterpret_cast<uintptr_t>(data_);
  auto at = reinterpret_cast<uintptr_t>(p);
  return data_ != nullptr && at >= begin && at - begin <= size_ && bytes <= size_ - (at - begin);
}

void Mapping::MakePrivate(int fd) const {
  if (data_ == nullptr) return;
  ::mmap(data_, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
}

}  // namespace hvd
