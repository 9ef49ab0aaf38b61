// GatherStream: the input of one member on its way to the others, through a few slots that stay in
// the cache, chunk by chunk. DESIGN.md has the picture.
//
// The owner writes the chunks and how many there are; each reader writes how many it has taken, and
// nothing else. An owner that finds no free slot goes on into a copy as large as its
// input: so it comes to its end without its readers. One thread at a time.
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

// How the input of one member is cut: every rank that knows the shapes cuts it alike. Chunk c has
// the c-th piece of each part; parts may end before others.
class StreamCut {
 public:
  static constexpr size_t kChunkBytes = 64 << 10;  // at most, of all parts
  // Sizes of inputs with which a stream is faster than a copy as a whole: of a broadcast or an
  // alltoall, and of an allgather or a reducescatter.
  static constexpr size_t kFrom = 32 << 10;
  static constexpr size_t kFromOfAll = 128 << 10, kBelowOfAll = 4 << 20;
  static bool Pays(Collective collective, size_t bytes);

  struct Part {
    size_t first = 0, bytes = 0;  // of the input
  };

  StreamCut() = default;
  // Of member `owner` with this extent; only an alltoall needs its splits.
  StreamCut(const CollectiveCall& call, uint32_t owner, const Extent& extent);

  // Where each reader has a part of its own, these are too many members for the slots.
  static bool TooManyMembers(const CollectiveCall& call);

  // The part that a reader takes: its own one, or that of all.
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

// Zero in the beginning. Each line has one writer.
struct StreamWords {
  static constexpr uint64_t kSlots = 4;

  alignas(kCacheLine) std::atomic<uint64_t> posted;  // chunks that the readers may read
  // The chunk that lies in each slot, counted from 1. Any other one that is posted and that not all
  // have taken lies in the copy. Stored before `posted`.
  std::atomic<uint64_t> in_slot[kSlots];
};
struct alignas(kCacheLine) StreamReaderWord {
  static constexpr uint64_t kAll = UINT64_MAX;
  std::atomic<uint64_t> taken;  // chunks that this reader reads no more; kAll: it reads no other
};

// The memory of a stream, in this process.
struct StreamPlace {
  StreamPlace() = default;
  // `control`: the control block of the lease, `copy`: room for all of the input.
  StreamPlace(std::byte* control, uint32_t members, std::byte* copy);

  // Of a control block, and of its beginning that has to be zeroed.
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
  // So many failed looks for a slot before the next chunks go aside: longer than a reader at work
  // takes for a chunk, shorter than a thread looks before it gives its core away.
  static constexpr uint32_t kPatience = 200;
  static constexpr int kAsideAtOnce = 4;

  // `self`: the owner among `members`, who all read.
  StreamSource(StreamCut cut, StreamPlace place, const void* input, uint32_t members,
               uint32_t self);

  // Puts the next chunk into a slot; false if none is free, or no chunk is left.
  bool Post();
  // To be called when there is nothing else to do: after a while puts chunks aside.
  void PostAside();
  // Puts all chunks that are left where there is room, now.
  void PostAll();
  // The readers are at work just now.
  void ExpectReaders() { failed_looks_ = 0; }

  bool done() const { return posted_ == cut_.chunks(); }
  // Bytes of the input that have been posted, where there is one part.
  size_t posted_bytes() const;
  // The copy was used, so the readers may still read it.
  bool went_aside() const { return went_aside_; }
  bool TakeNews() { return std::exchange(news_, false); }

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
  uint32_t failed_looks_ = 0;  // looks since the last chunk that found a slot
  bool news_ = false, went_aside_ = false;
};

// A reader's side: takes its part piece by piece.
class StreamReader {
 public:
  StreamReader(StreamCut cut, StreamPlace place, uint32_t self);

  // Bytes of the part that it has taken, and that it takes in all.
  size_t taken_bytes() const;
  size_t bytes() const { return part_.bytes; }
  bool done() const { return taken_ == chunks_; }
  // The owner still has to bring something.
  bool lacks() const;
  // Something is there that was not taken.
  bool ready();
  // Then: the next piece, which stays there until Take.
  std::span<const std::byte> Next() const;
  void Take();

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
