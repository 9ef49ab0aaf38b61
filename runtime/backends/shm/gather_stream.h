// GatherStream: sends the input of one member to the others chunk by chunk, through a few slots
// that stay in the cache. DESIGN.md has the picture.
//
// The owner writes the chunks and their number; each reader writes only how many it has read. An
// owner without a free slot continues into a copy as large as its input, so it finishes without its
// readers. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_SHM_GATHER_STREAM_H_
#define HVD_RUNTIME_BACKENDS_SHM_GATHER_STREAM_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/shm/buffer_leases.h"

namespace hvd {

// How the input of one member is divided, equal on every rank that knows the shapes. Chunk c has
// the c-th piece of each part; parts may end before others.
class StreamCut {
 public:
  static constexpr size_t kChunkBytes = 64 << 10;  // at most, of all parts
  // Input sizes at which a stream is faster than a whole copy: of a broadcast or an alltoall, and
  // of an allgather or a reducescatter.
  static constexpr size_t kFrom = 32 << 10;
  static constexpr size_t kFromOfAll = 128 << 10, kBelowOfAll = 4 << 20;
  static bool Pays(Collective collective, size_t bytes);

  struct Part {
    size_t first = 0, bytes = 0;  // of the input
  };

  StreamCut() = default;
  // For the input of member `owner` with this extent; only an alltoall needs its splits.
  StreamCut(const CollectiveCall& call, uint32_t owner, const Extent& extent);

  // If each reader has its own part: too many members for the slots.
  static bool TooManyMembers(const CollectiveCall& call);

  // The part for a reader: its own, or the shared one.
  const Part& part_of(uint32_t reader) const { return parts_[index_of(reader)]; }
  uint64_t chunks() const { return chunks_; }
  uint64_t chunks_of(const Part& part) const { return (part.bytes + piece_ - 1) / piece_; }
  // Of a part, in the input.
  Part PieceOf(const Part& part, uint64_t chunk) const {
    const size_t skipped = std::min(part.bytes, chunk * piece_);
    return {part.first + skipped, std::min(piece_, part.bytes - skipped)};
  }
  // Where the piece of a reader lies in its slot.
  size_t InSlot(uint32_t reader) const { return index_of(reader) * piece_; }
  size_t piece_bytes() const { return piece_; }
  size_t slot_bytes() const { return parts_.size() * piece_; }
  std::span<const Part> parts() const { return parts_; }

 private:
  size_t index_of(uint32_t reader) const {
    return parts_.size() == 1 ? 0 : reader - (reader > owner_ ? 1 : 0);
  }

  std::vector<Part> parts_;
  uint32_t owner_ = 0;
  size_t piece_ = 1;
  uint64_t chunks_ = 0;
};

// Initially zero. Each line has one writer.
struct StreamWords {
  static constexpr uint64_t kSlots = 4;

  alignas(kCacheLine) std::atomic<uint64_t> posted;  // chunks that the readers may read
  // The chunk in each slot, counted from 1. Any other posted chunk not yet read by all is in the
  // copy. Stored before `posted`.
  std::atomic<uint64_t> in_slot[kSlots];
};
struct alignas(kCacheLine) StreamReaderWord {
  static constexpr uint64_t kAll = UINT64_MAX;
  std::atomic<uint64_t> taken;  // chunks that this reader is done with; kAll: it reads no more
};

// The memory of a stream, in this process.
struct StreamPlace {
  StreamPlace() = default;
  // `control`: the control block of the lease, `copy`: room for all of the input.
  StreamPlace(std::byte* control, uint32_t members, std::byte* copy);

  // Size of the control block, and of its zeroed beginning.
  static constexpr size_t BytesFor(uint32_t members) {
    return ZeroedFor(members) + StreamWords::kSlots * StreamCut::kChunkBytes;
  }
  static constexpr size_t ZeroedFor(uint32_t members) {
    return ReleaseFlagBytes(members) + sizeof(StreamWords) + members * sizeof(StreamReaderWord);
  }

  StreamWords* words = nullptr;
  StreamReaderWord* readers = nullptr;  // by member
  std::byte* slots = nullptr;
  std::byte* copy = nullptr;
};

// The owner's side.
class StreamSource {
 public:
  // Failed polls for a slot before the next chunks go to the copy: longer than an active reader
  // takes for a chunk, shorter than a thread polls before it yields.
  static constexpr uint32_t kPatience = 200;
  static constexpr int kAsideAtOnce = 4;

  // `self`: the owner among `members`, who all read.
  StreamSource(StreamCut cut, StreamPlace place, const void* input, uint32_t members,
               uint32_t self);

  // Puts the next chunk into a slot; false if none is free, or no chunk is left.
  bool Post();
  // Called when there is nothing else to do: after a while puts chunks into the copy.
  void PostAside();
  // Puts all remaining chunks wherever there is room, now.
  void PostAll();
  // The readers are working now.
  void ExpectReaders() { failed_looks_ = 0; }

  bool done() const { return posted_ == cut_.chunks(); }
  // Bytes of the input posted so far, if there is one part.
  size_t posted_bytes() const;
  // The copy was used, so the readers may still read it.
  bool went_aside() const { return went_aside_; }
  bool PopPublished() { return std::exchange(published_, false); }

 private:
  bool HasSlot();
  uint64_t LeastTaken() const;
  void PostOne(bool aside);

  StreamCut cut_;
  StreamPlace place_;
  const std::byte* input_;
  uint32_t members_, self_;
  uint64_t posted_ = 0;
  uint64_t least_taken_ = 0;   // when last looked
  uint32_t failed_looks_ = 0;  // polls since the last chunk that found a slot
  bool published_ = false, went_aside_ = false;
};

// A reader's side: reads its part piece by piece.
class StreamReader {
 public:
  StreamReader(StreamCut cut, StreamPlace place, uint32_t self);

  // Bytes of its part read so far, and in total.
  size_t taken_bytes() const;
  size_t bytes() const { return part_.bytes; }
  bool done() const { return taken_ == chunks_; }
  // The owner has more to send.
  bool lacks() const;
  // An unread piece is available.
  bool ready();
  // Then: the next piece, valid until Pop.
  std::span<const std::byte> Next() const;
  void Pop();

 private:
  uint64_t Posted() const { return place_.words->posted.load(std::memory_order_acquire); }

  StreamCut cut_;
  StreamPlace place_;
  uint32_t self_;
  StreamCut::Part part_;
  uint64_t chunks_;
  uint64_t taken_ = 0;
  uint64_t posted_ = 0;  // when last looked
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_GATHER_STREAM_H_
