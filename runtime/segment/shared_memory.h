// Shared memory by descriptor: memfd, or an unlinked file if memfd is missing. Nameless, so nothing
// is left behind.
#ifndef HVD_RUNTIME_SEGMENT_SHARED_MEMORY_H_
#define HVD_RUNTIME_SEGMENT_SHARED_MEMORY_H_

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// A close-on-exec descriptor of `bytes` zero bytes (need not be a multiple of the page size). Pages
// are not yet reserved. `label` only appears in /proc/PID/maps.
Result<UniqueFd> CreateSharedMemory(const char* label, size_t bytes);

// The fallback of CreateSharedMemory, public for tests: an unlinked file in $TMPDIR or /tmp.
Result<UniqueFd> CreateUnlinkedFile(size_t bytes);

// Reserves every page, so that a later store cannot raise SIGBUS; kOutOfMemory if there is no room.
Status ReservePages(int fd, size_t bytes);

// Seals the size against shrinking and growing. Ok (and without effect) on an unlinked file.
Status SealSize(int fd);

// A mapping of a whole shared-memory descriptor; unmapped on destruction. Movable.
class Mapping {
 public:
  Mapping() = default;
  // Maps `bytes` of `fd`, shared, readable and writable. The descriptor may be closed afterwards.
  static Result<Mapping> Map(int fd, size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool Contains(const void* p, size_t bytes) const;

  // Replaces the mapping, at the same address, by a private copy-on-write view of `fd`: for a
  // forked child, whose stores must not reach the parent's world. Async-signal-safe.
  void MakePrivate(int fd) const;

 private:
  Mapping(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_SHARED_MEMORY_H_
