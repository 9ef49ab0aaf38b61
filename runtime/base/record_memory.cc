#include "runtime/base/record_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

#include "runtime/base/align.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread_annotations.h"

namespace hvd {
namespace {

#if defined(__SANITIZE_ADDRESS__)
#define HVD_RECORDS_ARE_GUARDED true
#elif defined(__has_feature)
#define HVD_RECORDS_ARE_GUARDED __has_feature(address_sanitizer)
#else
#define HVD_RECORDS_ARE_GUARDED false
#endif
constexpr bool kInHeap = HVD_RECORDS_ARE_GUARDED;

constexpr size_t kSlab = size_t{256} << 10;
constexpr size_t kSmallest = 16;
constexpr size_t kLargest = size_t{32} << 10;  // larger ones are mapped on their own

// Size classes: 16, 32, 48, 64 bytes, then four to each doubling.
constexpr size_t ClassOf(size_t bytes) {
  const size_t units = (std::max(bytes, kSmallest) - 1) / kSmallest;
  if (units < 4) return units;
  const size_t shift = std::bit_width(units) - 3;
  return 4 * shift + (units >> shift);
}
constexpr size_t BytesOf(size_t size_class) {
  if (size_class < 4) return (size_class + 1) * kSmallest;
  const size_t shift = size_class / 4 - 1;
  return ((size_class - 4 * shift + 1) << shift) * kSmallest;
}
constexpr size_t kClasses = ClassOf(kLargest) + 1;

// ClassOf is monotonic, so checking the bounds of the classes is enough.
constexpr bool ClassesAreTight() {
  for (size_t size_class = 0; size_class < kClasses; ++size_class) {
    const size_t bytes = BytesOf(size_class);
    if (ClassOf(bytes) != size_class || ClassOf(bytes + 1) != size_class + 1) return false;
  }
  return BytesOf(kClasses - 1) == kLargest;
}
static_assert(ClassesAreTight());

void* Map(size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return mapped;
}

class Arena {
 public:
  void* Allocate(size_t bytes) {
    const MutexLock lock(mutex_);
    void* memory = Place(bytes);
    usage_.used += SizeOf(bytes);
    return memory;
  }

  void Free(void* memory, size_t bytes) noexcept {
    const MutexLock lock(mutex_);
    usage_.used -= SizeOf(bytes);
    if (kInHeap) {
      ::operator delete(memory);
    } else if (bytes > kLargest) {
      ::munmap(memory, SizeOf(bytes));
      usage_.mapped -= SizeOf(bytes);
    } else {
      FreeBlock*& first = free_[ClassOf(bytes)];
      first = new (memory) FreeBlock{first};
    }
  }

  RecordMemoryUsage usage() {
    const MutexLock lock(mutex_);
    return usage_;
  }

 private:
  struct FreeBlock {
    FreeBlock* next;
  };

  static size_t SizeOf(size_t bytes) {
    constexpr size_t kPage = 4096;
    return bytes > kLargest ? RoundUp(bytes, kPage) : BytesOf(ClassOf(bytes));
  }

  void* Place(size_t bytes) HVD_REQUIRES(mutex_) {
    if (kInHeap) return ::operator new(bytes);
    const size_t size = SizeOf(bytes);
    if (bytes > kLargest) {
      void* mapped = Map(size);
      usage_.mapped += size;
      return mapped;
    }
    if (FreeBlock*& first = free_[ClassOf(bytes)]; first != nullptr) {
      return std::exchange(first, first->next);
    }
    if (left_ < size) {  // the rest of the former slab, less than kLargest, is wasted
      next_ = static_cast<std::byte*>(Map(kSlab));
      left_ = kSlab;
      usage_.mapped += kSlab;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  Mutex mutex_;
  RecordMemoryUsage usage_ HVD_GUARDED_BY(mutex_);
  std::array<FreeBlock*, kClasses> free_ HVD_GUARDED_BY(mutex_){};
  std::byte* next_ HVD_GUARDED_BY(mutex_) = nullptr;  // of the newest slab
  size_t left_ HVD_GUARDED_BY(mutex_) = 0;
};

// Never destroyed: threads may free records while the process exits.
Arena& TheArena() {
  static Arena* const arena = new Arena;
  return *arena;
}

}  // namespace

void* RecordMemory::Allocate(size_t bytes) { return TheArena().Allocate(bytes); }
void RecordMemory::Free(void* memory, size_t bytes) noexcept { TheArena().Free(memory, bytes); }
RecordMemoryUsage RecordMemory::Usage() { return TheArena().usage(); }

}  // namespace hvd
