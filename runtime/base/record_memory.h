// RecordMemory: memory of its own for records that outlive the call that made them (names, their
// details, operations), so that they never lie between the blocks of the framework.
//
// A record of some hundred bytes in the middle of the process's heap keeps the allocator from
// joining the free memory on both sides of it: a script with a fresh tensor in each step, and a
// record made in each step, would grow without end. Freed records are used again for records of
// the same size class; nothing is ever returned to the system, so the memory is bounded by the most
// records that existed at one time. Thread-safe.
//
// Under AddressSanitizer each record is a block of the heap after all, so that it is guarded.
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
  // `bytes`: as it was allocated with.
  static void Free(void* memory, size_t bytes) noexcept;
  static RecordMemoryUsage Usage();
};

// Has no state, so containers with it are as large as others.
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

// A base of classes whose objects are records.
struct InRecordMemory {
  static void* operator new(size_t bytes) { return RecordMemory::Allocate(bytes); }
  static void operator delete(void* memory, size_t bytes) noexcept {
    RecordMemory::Free(memory, bytes);
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_RECORD_MEMORY_H_
