// RecordMemory: separate memory for records that outlive the call that created them (names, their
// details, operations), so that they never fragment the framework's heap.
//
// A record of some hundred bytes in the middle of the process's heap prevents the allocator from
// coalescing the free memory on both sides: a script that creates a new tensor and a record in each
// step would grow without bound. Freed records are reused for records of the same size class;
// nothing is ever returned to the system, so memory is bounded by the largest number of records
// that existed at one time. Thread-safe.
//
// Under AddressSanitizer each record is an ordinary heap block, so that it is guarded.
#ifndef HVD_RUNTIME_BASE_RECORD_MEMORY_H_
#define HVD_RUNTIME_BASE_RECORD_MEMORY_H_

#include <cstddef>
#include <new>
#include <string>
#include <vector>

namespace hvd {

struct RecordMemoryUsage {
  size_t used = 0;    // bytes of live records, rounded up to their size classes
  size_t mapped = 0;  // bytes from the system; 0 under AddressSanitizer
};

class RecordMemory {
 public:
  // Aligned to 16 bytes. Throws std::bad_alloc.
  static void* Allocate(size_t bytes);
  // `bytes`: as passed to Allocate.
  static void Free(void* memory, size_t bytes) noexcept;
  static RecordMemoryUsage Usage();
};

// Stateless, so it does not enlarge containers.
template <typename T>
struct RecordAllocator {
  static_assert(alignof(T) <= 16);
  using value_type = T;

  RecordAllocator() = default;
  template <typename U>
  RecordAllocator(const RecordAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    if (count > static_cast<size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(RecordMemory::Allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) noexcept {
    RecordMemory::Free(memory, count * sizeof(T));
  }
  template <typename U>
  friend bool operator==(const RecordAllocator&, const RecordAllocator<U>&) {
    return true;
  }
};

template <typename T>
using RecordVector = std::vector<T, RecordAllocator<T>>;
using RecordString = std::basic_string<char, std::char_traits<char>, RecordAllocator<char>>;

// Base class of records.
struct InRecordMemory {
  static void* operator new(size_t bytes) { return RecordMemory::Allocate(bytes); }
  static void operator delete(void* memory, size_t bytes) noexcept {
    RecordMemory::Free(memory, bytes);
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_RECORD_MEMORY_H_
