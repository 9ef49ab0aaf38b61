#include "runtime/backends/shm/buffer_leases.h"

#include <cstring>
#include <optional>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

// Above the number of the data's segment.
constexpr uint64_t kStagedBit = uint64_t{1} << 32;
constexpr uint64_t kRingBit = uint64_t{1} << 33;

}  // namespace

bool Lease::ReleasedByAllBut(uint32_t member) const {
  for (uint32_t m = 0; m < members; ++m) {
    if (m != member && !ReleasedBy(m)) return false;
  }
  return true;
}

void LeaseDescriptor::WriteTo(BufferDescriptor* descriptor) const {
  const uint64_t how = (staged ? kStagedBit : 0) | (ring ? kRingBit : 0);
  descriptor->words = {data.segment | how, data.offset, control.segment | uint64_t{chunk_kib} << 32,
                       control.offset};
}

LeaseDescriptor LeaseDescriptor::In(const BufferDescriptor& descriptor) {
  const auto& words = descriptor.words;
  return {{static_cast<uint32_t>(words[0]), words[1]},
          {static_cast<uint32_t>(words[2]), words[3]},
          (words[0] & kStagedBit) != 0,
          static_cast<uint32_t>(words[2] >> 32),
          (words[0] & kRingBit) != 0};
}

void WarnWithoutSharedMemory(size_t bytes) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  LogWarning(
      Format("this rank got no shared memory for a tensor of {} bytes, so it goes to the other "
             "ranks through the request rings, which is slower; give the job more memory or fewer "
             "ranks per host",
             bytes));
}

// Memory that a peer still uses stays allocated: the group is over, and only the start of another
// world shows that the peer is done (SharedHeap::ReclaimWorld).
BufferLeases::~BufferLeases() {
  Collect();
  for (auto& [bytes, blocks] : idle_) {
    for (const Block& block : blocks) heap_.Free(block.memory);
  }
}

Result<Lease> BufferLeases::Open(uint32_t members, size_t bytes, size_t zeroed) {
  Lease lease;
  lease.control_bytes = RoundUp(bytes, kCacheLine);
  lease.members = members;
  std::vector<Block>& idle = idle_[lease.control_bytes];
  if (!idle.empty()) {
    lease.control = idle.back().memory;
    lease.control_at = idle.back().at;
    idle.pop_back();
  } else {
    Status why;
    lease.control = static_cast<std::byte*>(
        heap_.Allocate(lease.control_bytes, /*zeroed=*/false, &why, Until::kWorldEnds));
    if (lease.control == nullptr) return why;
    lease.control_at = *heap_.Locate(lease.control, lease.control_bytes);
  }
  std::memset(lease.control, 0, zeroed);
  return lease;
}

Result<Location> BufferLeases::Reserve(Lease* lease, size_t bytes) {
  Status why;
  void* copy = heap_.Allocate(bytes, /*zeroed=*/false, &why, Until::kWorldEnds);
  if (copy == nullptr) return why;
  lease->staging = copy;
  return *heap_.Locate(copy, bytes);
}

Result<Location> BufferLeases::Stage(Lease* lease, const void* source, size_t bytes) {
  Result<Location> copy = Reserve(lease, bytes);
  if (copy.ok()) CopyRange(lease->staging, source, bytes);
  return copy;
}

void BufferLeases::FreeCopy(Lease* lease) {
  if (lease->staging != nullptr) heap_.Free(lease->staging);
  lease->staging = nullptr;
}

void BufferLeases::Reclaim(Lease* lease) {
  FreeCopy(lease);
  if (lease->control != nullptr) {
    idle_[lease->control_bytes].push_back({lease->control, lease->control_at});
  }
  *lease = {};
}

void BufferLeases::ReclaimWhenReleased(Lease* lease, uint32_t self) {
  if (lease->control == nullptr) return;
  if (lease->ReleasedByAllBut(self)) return Reclaim(lease);
  waiting_.push_back({*lease, self});
  *lease = {};
}

void BufferLeases::CollectWaiting() {
  std::erase_if(waiting_, [this](Waiting& waiting) {
    if (!waiting.lease.ReleasedByAllBut(waiting.self)) return false;
    Reclaim(&waiting.lease);
    return true;
  });
}

}  // namespace hvd
