// Scratch memory reused across operations: fresh pages cost more than the arithmetic on them.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_SCRATCH_POOL_H_
#define HVD_RUNTIME_BACKENDS_GLOO_SCRATCH_POOL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/base/mutex.h"

namespace hvd {

// Thread-safe. Keeps the largest returned piece, up to 32 MiB.
class ScratchPool {
 public:
  struct Piece {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
  };
  // Returns to the pool, which outlives it.
  class Lease {
   public:
    Lease(ScratchPool& pool, Piece piece) : pool_(pool), piece_(std::move(piece)) {}
    Lease(const Lease&) = delete;
    ~Lease() { pool_.Return(std::move(piece_)); }
    std::byte* get() const { return piece_.memory.get(); }

   private:
    ScratchPool& pool_;
    Piece piece_;
  };

  // At least this many bytes, uninitialised.
  Lease Acquire(size_t bytes) { return Lease(*this, Find(bytes)); }

 private:
  static constexpr size_t kMostKeptBytes = 32 << 20;

  Piece Find(size_t bytes) {
    {
      MutexLock lock(mutex_);
      if (kept_.bytes >= bytes && kept_.memory != nullptr) return std::exchange(kept_, {});
    }
    return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  }
  void Return(Piece piece) {
    MutexLock lock(mutex_);
    if (piece.bytes > kept_.bytes && piece.bytes <= kMostKeptBytes) kept_ = std::move(piece);
  }

  Mutex mutex_;
  Piece kept_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_SCRATCH_POOL_H_
