#include "runtime/device/cuda/staging_pool.h"

#include <algorithm>
#include <bit>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kSmallestPiece = 64 * 1024;
constexpr size_t kLargestPiece = size_t{1} << 40;

}  // namespace

Result<std::byte*> StagingPool::Borrow(size_t bytes) {
  if (bytes > kLargestPiece) {
    return OutOfMemory(Format("no {} bytes of pinned memory in one piece", bytes));
  }
  const size_t rounded = std::bit_ceil(std::max(bytes, kSmallestPiece));
  const Result<Piece*> found = FindFree(rounded);
  if (!found.ok()) return found.status();
  if (*found != nullptr) {
    (*found)->lent = true;
    return (*found)->memory;
  }
  void* memory = nullptr;
  Status status = calls_.Do(calls_.driver().mem_host_alloc, &memory, rounded, kCudaHostPortable);
  if (!status.ok()) return status;
  pieces_.push_back({static_cast<std::byte*>(memory), rounded, true, {}});
  return pieces_.back().memory;
}

Status StagingPool::Return(std::byte* memory, CuStream stream) {
  auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                            [&](const Piece& one) { return one.memory == memory && one.lent; });
  if (piece == pieces_.end()) {
    return InvalidArgument("staging memory of " + calls_.device() +
                           " is returned that is not lent");
  }
  const Result<DeviceTicket> ticket = events_.Record(stream);
  if (!ticket.ok()) return ticket.status();  // and it stays lent: the device may be using it
  piece->lent = false;
  piece->returned = *ticket;
  return Status::Ok();
}

bool StagingPool::IsLent(const std::byte* memory, size_t bytes) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.lent && memory >= piece.memory && bytes <= piece.bytes &&
           static_cast<size_t>(memory - piece.memory) <= piece.bytes - bytes;
  });
}

void StagingPool::FreeAll() {
  for (const Piece& piece : pieces_) calls_.driver().mem_free_host(piece.memory);
  pieces_.clear();
}

Result<StagingPool::Piece*> StagingPool::FindFree(size_t bytes) {
  for (Piece& piece : pieces_) {
    if (piece.lent || piece.bytes != bytes) continue;
    const Result<bool> ready = events_.Ready(piece.returned);
    if (!ready.ok()) return ready.status();
    if (*ready) return &piece;
  }
  return static_cast<Piece*>(nullptr);
}

}  // namespace hvd
