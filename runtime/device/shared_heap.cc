#include "runtime/device/shared_heap.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/base/align.h"
#include "runtime/base/check.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kMinimumSegment = 4ull << 20;
constexpr uint64_t kPage = 4096;
constexpr size_t kLargest = size_t{1}
                            << 46;  // half of what x86-64 can map, so that no sum below overflows

Result<UniqueFd> Duplicate(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return SystemError("duplicating the descriptor of a data segment", errno);
  return copy;
}

}  // namespace

void* SharedHeap::Allocate(size_t bytes, bool zeroed, Status* why, Until until) {
  if (bytes > kLargest) {
    if (why != nullptr) {
      *why = OutOfMemory(Format("no host has {} bytes of memory; ask for less", bytes));
    }
    return nullptr;
  }
  const uint64_t rounded = RoundUp(std::max<size_t>(bytes, 1), kAlignment);
  MutexLock lock(mutex_);
  void* memory = nullptr;
  for (auto& segment : segments_) {
    if ((memory = AllocateIn(*segment, rounded, until)) != nullptr) break;
  }
  if (memory == nullptr) {
    Result<Segment*> grown = Grow(rounded);
    if (!grown.ok()) {
      if (why != nullptr) *why = grown.status();
      return nullptr;
    }
    memory = AllocateIn(**grown, rounded, until);
  }
  if (zeroed) std::memset(memory, 0, bytes);
  return memory;
}

void* SharedHeap::AllocateAnywhere(size_t bytes, Status* why) {
  void* memory = Allocate(bytes, /*zeroed=*/false, why);
  if (memory != nullptr || bytes > kLargest) return memory;
  memory = std::aligned_alloc(kAlignment, RoundUp(std::max<size_t>(bytes, 1), kAlignment));
  if (memory == nullptr) return nullptr;
  MutexLock lock(mutex_);
  private_.insert(memory);
  return memory;
}

SharedHeap::~SharedHeap() {
  for (void* memory : private_) std::free(memory);
}

// First fit: tensors of one model are allocated once and kept, so fragmentation stays low.
void* SharedHeap::AllocateIn(Segment& segment, size_t bytes, Until until) {
  for (auto it = segment.free.begin(); it != segment.free.end(); ++it) {
    auto [offset, available] = *it;
    if (available < bytes) continue;
    segment.free.erase(it);
    if (available > bytes) segment.free.emplace(offset + bytes, available - bytes);
    const bool fresh = segment.used.emplace(offset, bytes).second;
    HVD_CHECK(fresh && offset + bytes <= segment.mapping.size(), fresh, offset, bytes,
              segment.mapping.size());
    if (until == Until::kWorldEnds) segment.of_world.insert(offset);
    return segment.mapping.data() + offset;
  }
  return nullptr;
}

// Doubles the heap, so that the number of segments grows with the logarithm of the memory.
Result<SharedHeap::Segment*> SharedHeap::Grow(size_t bytes) {
  uint64_t total = 0;
  for (const auto& segment : segments_) total += segment->mapping.size();
  constexpr uint64_t kMaximumStep = 256ull << 20;
  uint64_t size = std::max<uint64_t>({bytes, kMinimumSegment, std::min(total, kMaximumStep)});
  Result<DataSegment> made = source_.Allocate(RoundUp(size, kPage));
  if (!made.ok()) return made.status();
  if (made->bytes < bytes) {
    source_.Free(made->id);
    return Internal(Format("the agent gave a data segment of {} bytes where this rank asked for {}",
                           made->bytes, bytes));
  }
  Status reserved = ReservePages(made->fd.get(), made->bytes);
  if (reserved.ok()) reserved = SealSize(made->fd.get());
  Result<Mapping> mapping =
      reserved.ok() ? Mapping::Map(made->fd.get(), made->bytes) : Result<Mapping>(reserved);
  if (!mapping.ok()) {
    source_.Free(made->id);
    return mapping.status();
  }
  auto segment = std::make_unique<Segment>();
  segment->free.emplace(0, made->bytes);
  segment->origin = std::move(*made);
  segment->mapping = std::move(*mapping);
  segments_.push_back(std::move(segment));
  return segments_.back().get();
}

SharedHeap::Segment* SharedHeap::SegmentOf(const void* memory, size_t bytes) const {
  for (const auto& segment : segments_) {
    if (segment->mapping.Contains(memory, bytes)) return segment.get();
  }
  return nullptr;
}

void SharedHeap::Adopt(void* memory, std::function<void()> release) {
  MutexLock lock(mutex_);
  adopted_[memory] = std::move(release);
}

bool SharedHeap::Free(void* memory) {
  std::function<void()> release;
  {
    MutexLock lock(mutex_);
    if (adopted_.empty()) [[likely]]
      return FreeOwn(memory);
    const auto found = adopted_.find(memory);
    if (found == adopted_.end()) return FreeOwn(memory);
    release = std::move(found->second);
    adopted_.erase(found);
  }
  release();  // may take long
  return true;
}

bool SharedHeap::FreeOwn(void* memory) {
  Segment* segment = SegmentOf(memory, 1);
  if (segment == nullptr) {
    if (private_.erase(memory) == 0) return false;
    std::free(memory);
    return true;
  }
  return FreeIn(*segment,
                static_cast<uint64_t>(static_cast<std::byte*>(memory) - segment->mapping.data()));
}

void SharedHeap::ReclaimWorld() {
  MutexLock lock(mutex_);
  for (const auto& segment : segments_) {
    while (!segment->of_world.empty()) FreeIn(*segment, *segment->of_world.begin());
  }
}

bool SharedHeap::FreeIn(Segment& segment, uint64_t offset) {
  auto used = segment.used.find(offset);
  if (used == segment.used.end()) return false;
  uint64_t bytes = used->second;
  segment.used.erase(used);
  segment.of_world.erase(offset);
  auto next = segment.free.lower_bound(offset);
  HVD_CHECK(next == segment.free.end() || offset + bytes <= next->first, offset, bytes,
            next->first);
  if (next != segment.free.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = segment.free.erase(next);
  }
  if (next != segment.free.begin()) {
    auto before = std::prev(next);
    HVD_CHECK(before->first + before->second <= offset, before->first, before->second, offset);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return true;
    }
  }
  segment.free.emplace(offset, bytes);
  return true;
}

std::optional<Location> SharedHeap::Locate(const void* memory, size_t bytes) const {
  MutexLock lock(mutex_);
  const Segment* segment = SegmentOf(memory, bytes);
  if (segment == nullptr) return std::nullopt;
  auto offset = static_cast<const std::byte*>(memory) - segment->mapping.data();
  return Location{segment->origin.id, static_cast<uint64_t>(offset)};
}

void SharedHeap::MakePrivateAfterFork() const {
  for (const auto& segment : segments_) segment->mapping.MakePrivate(segment->origin.fd.get());
}

Result<std::byte*> SharedMemoryMap::Resolve(Location location, size_t bytes) {
  MutexLock lock(mutex_);
  auto found = mapped_.find(location.segment);
  if (found == mapped_.end()) {
    Result<DataSegment> segment = source_.Fetch(location.segment);
    if (!segment.ok()) return segment.status();
    Result<Mapping> mapping = Mapping::Map(segment->fd.get(), segment->bytes);
    if (!mapping.ok()) return mapping.status();
    Mapped mapped{std::move(segment->fd), std::move(*mapping)};
    found = mapped_.emplace(location.segment, std::move(mapped)).first;
  }
  const Mapping& mapping = found->second.mapping;
  if (location.offset > mapping.size() || bytes > mapping.size() - location.offset) {
    return Internal(Format("a peer named bytes {} to {} of data segment {}, which has only {}",
                           location.offset, location.offset + bytes, location.segment,
                           mapping.size()));
  }
  return mapping.data() + location.offset;
}

void SharedMemoryMap::Clear() {
  MutexLock lock(mutex_);
  mapped_.clear();
}

void SharedMemoryMap::MakePrivateAfterFork() const {
  for (const auto& [id, mapped] : mapped_) mapped.mapping.MakePrivate(mapped.fd.get());
}

Result<DataSegment> LocalSegmentSource::Allocate(uint64_t bytes) {
  Result<UniqueFd> fd = CreateSharedMemory("hvd-data", bytes);
  if (!fd.ok()) return fd.status();
  Result<UniqueFd> copy = Duplicate(fd->get());
  if (!copy.ok()) return copy.status();
  MutexLock lock(mutex_);
  uint32_t id = next_id_++;
  kept_[id] = DataSegment{id, bytes, std::move(*copy)};
  return DataSegment{id, bytes, std::move(*fd)};
}

Result<DataSegment> LocalSegmentSource::Fetch(uint32_t id) {
  MutexLock lock(mutex_);
  auto found = kept_.find(id);
  if (found == kept_.end()) return Internal(Format("no data segment {}", id));
  Result<UniqueFd> copy = Duplicate(found->second.fd.get());
  if (!copy.ok()) return copy.status();
  return DataSegment{id, found->second.bytes, std::move(*copy)};
}

void LocalSegmentSource::Free(uint32_t id) {
  MutexLock lock(mutex_);
  kept_.erase(id);
}

}  // namespace hvd
