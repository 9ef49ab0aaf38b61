// Bytes to and from one peer, in chunks that travel through memory of our own: no size is too large
// for MPI's int, and MPI never touches the caller's memory, so the caller has it back even after an
// aborted stream.
//
// Operations have tags of 64 bits and MPI's have 31, so each chunk has a header with its operation;
// a chunk received for another operation is handed over. One thread at a time per stream.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_STREAMS_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_STREAMS_H_

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <tuple>

#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace hvd {

struct ChunkHeader {
  uint64_t tag = 0;    // of the operation
  uint64_t phase = 0;  // of the operation: its steps follow each other under one tag
  uint64_t chunk = 0;  // number in the stream
  uint64_t bytes = 0;  // behind the header
};

struct Chunk {
  MpiBuffer buffer;
  size_t capacity = 0;  // of the buffer
  ChunkHeader header;   // as it arrived
  MPI_Request request = MPI_REQUEST_NULL;

  std::byte* payload() { return buffer.get() + sizeof(ChunkHeader); }
};

// Memory for chunks, and the chunks received for other operations. Thread-safe.
class ChunkPool {
 public:
  explicit ChunkPool(MpiLibrary& library) : library_(library) {}

  Chunk Acquire(size_t payload_bytes);
  void Release(Chunk chunk);
  // MPI may still use the chunk, and no thread waits for it any more.
  void GiveUpOn(Chunk chunk, std::string_view what) {
    library_.GiveUpOn(std::move(chunk.buffer), what);
  }

  void AddStray(int peer, Chunk chunk);
  // A stray of this operation from this peer whose number `wanted` accepts; an empty chunk if none.
  Chunk PopStray(int peer, uint64_t tag, uint64_t phase,
                 const std::function<bool(uint64_t)>& wanted);

 private:
  using StrayKey = std::tuple<int, uint64_t, uint64_t>;
  MpiLibrary& library_;
  Mutex mutex_;
  std::multimap<size_t, MpiBuffer> free_ HVD_GUARDED_BY(mutex_);
  size_t free_bytes_ HVD_GUARDED_BY(mutex_) = 0;
  std::multimap<StrayKey, Chunk> strays_ HVD_GUARDED_BY(mutex_);
  std::atomic<size_t> stray_count_{0};
};

// The common properties of all streams of one phase of an operation.
struct StreamKind {
  ChunkPool* pool = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  uint64_t tag = 0;
  uint64_t phase = 0;
  size_t chunk_bytes = 0;  // the same on all ranks
};

// Spread over MPI's range, so that tags which count up in several groups seldom collide.
constexpr int MpiTagOf(uint64_t tag) { return static_cast<int>((tag * 0x9E3779B97F4A7C15u) >> 33); }

class OutStream {
 public:
  OutStream(const StreamKind& kind, int peer, const std::byte* data, size_t bytes)
      : kind_(kind), peer_(peer), data_(data), bytes_(bytes), allowed_(bytes) {}
  ~OutStream();
  OutStream(OutStream&&) = default;

  // Only this many bytes of the data are ready so far.
  void Allow(size_t bytes) { allowed_ = bytes; }
  Result<Turn> Step();
  bool done() const { return sent_ == bytes_ && under_way_.empty(); }
  int peer() const { return peer_; }

 private:
  StreamKind kind_;
  int peer_;
  const std::byte* data_;
  size_t bytes_, allowed_;
  size_t sent_ = 0;  // bytes given to MPI
  std::deque<Chunk> under_way_;
};

class InStream {
 public:
  InStream(const StreamKind& kind, int peer, size_t bytes)
      : kind_(kind),
        peer_(peer),
        bytes_(bytes),
        chunks_((bytes + kind.chunk_bytes - 1) / kind.chunk_bytes) {}
  ~InStream();
  InStream(InStream&&) = default;

  Result<Turn> Step();
  // The next chunk, once it has arrived; valid until Pop.
  bool ready() const { return arrived_.count(taken_) != 0; }
  std::span<const std::byte> front();
  size_t offset() const { return taken_ * kind_.chunk_bytes; }
  void Pop();
  bool done() const { return taken_ == chunks_; }
  int peer() const { return peer_; }

 private:
  size_t BytesOf(size_t chunk) const;
  bool IsNew(uint64_t chunk) const { return chunk >= taken_ && arrived_.count(chunk) == 0; }
  Status Post();
  Status Arrive(Chunk chunk);
  void Retract();

  StreamKind kind_;
  int peer_;
  size_t bytes_, chunks_;
  size_t got_ = 0;    // chunks that arrived
  size_t taken_ = 0;  // and were popped
  std::deque<Chunk> posted_;
  std::map<uint64_t, Chunk> arrived_;  // by number
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_STREAMS_H_
