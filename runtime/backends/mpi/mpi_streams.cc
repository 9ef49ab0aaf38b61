#include "runtime/backends/mpi/mpi_streams.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kWindow = 4;  // chunks of one stream in flight
constexpr size_t kMostFreeBytes = size_t{64} << 20;

}  // namespace

Chunk ChunkPool::Acquire(size_t payload_bytes) {
  Chunk chunk;
  chunk.capacity = std::bit_ceil(payload_bytes + sizeof(ChunkHeader));
  {
    MutexLock lock(mutex_);
    auto found = free_.find(chunk.capacity);
    if (found != free_.end()) {
      chunk.buffer = std::move(found->second);
      free_.erase(found);
      free_bytes_ -= chunk.capacity;
    }
  }
  if (chunk.buffer == nullptr) {
    chunk.buffer = std::make_unique_for_overwrite<std::byte[]>(chunk.capacity);
  }
  return chunk;
}

void ChunkPool::Release(Chunk chunk) {
  MutexLock lock(mutex_);
  if (free_bytes_ + chunk.capacity > kMostFreeBytes) return;
  free_bytes_ += chunk.capacity;
  free_.emplace(chunk.capacity, std::move(chunk.buffer));
}

void ChunkPool::AddStray(int peer, Chunk chunk) {
  MutexLock lock(mutex_);
  StrayKey key{peer, chunk.header.tag, chunk.header.phase};
  strays_.emplace(key, std::move(chunk));
  stray_count_.store(strays_.size(), std::memory_order_release);
}

Chunk ChunkPool::PopStray(int peer, uint64_t tag, uint64_t phase,
                          const std::function<bool(uint64_t)>& wanted) {
  if (stray_count_.load(std::memory_order_acquire) == 0) return {};
  MutexLock lock(mutex_);
  auto [first, last] = strays_.equal_range({peer, tag, phase});
  auto found =
      std::find_if(first, last, [&](auto& one) { return wanted(one.second.header.chunk); });
  if (found == last) return {};
  Chunk chunk = std::move(found->second);
  strays_.erase(found);
  stray_count_.store(strays_.size(), std::memory_order_release);
  return chunk;
}

// ---- out

Result<Turn> OutStream::Step() {
  Turn turn = Turn::kIdle;
  while (!under_way_.empty()) {
    int complete = 0;
    int code = MPI_Test(&under_way_.front().request, &complete, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(Format("sending to rank {}", peer_), code);
    if (!complete) break;
    kind_.pool->Release(std::move(under_way_.front()));
    under_way_.pop_front();
    turn = Turn::kMoved;
  }
  while (sent_ < bytes_ && under_way_.size() < kWindow) {
    size_t bytes = std::min(kind_.chunk_bytes, bytes_ - sent_);
    if (sent_ + bytes > allowed_) break;
    Chunk chunk = kind_.pool->Acquire(bytes);
    ChunkHeader header{kind_.tag, kind_.phase, sent_ / kind_.chunk_bytes, bytes};
    std::memcpy(chunk.buffer.get(), &header, sizeof(header));
    std::memcpy(chunk.payload(), data_ + sent_, bytes);
    int code = MPI_Isend(chunk.buffer.get(), static_cast<int>(sizeof(header) + bytes), MPI_BYTE,
                         peer_, MpiTagOf(kind_.tag), kind_.comm, &chunk.request);
    if (code != MPI_SUCCESS) return MpiError(Format("sending to rank {}", peer_), code);
    under_way_.push_back(std::move(chunk));
    sent_ += bytes;
    turn = Turn::kMoved;
  }
  return done() ? Turn::kDone : turn;
}

OutStream::~OutStream() {
  for (Chunk& chunk : under_way_) {
    kind_.pool->GiveUpOn(std::move(chunk), Format("data for rank {}", peer_));
  }
}

// ---- in

size_t InStream::BytesOf(size_t chunk) const {
  return std::min(kind_.chunk_bytes, bytes_ - chunk * kind_.chunk_bytes);
}

std::span<const std::byte> InStream::front() {
  return {arrived_.at(taken_).payload(), BytesOf(taken_)};
}

void InStream::Pop() {
  auto chunk = arrived_.find(taken_);
  kind_.pool->Release(std::move(chunk->second));
  arrived_.erase(chunk);
  ++taken_;
}

// A receive uses the largest chunk size, since a message of another operation may arrive.
Status InStream::Post() {
  Chunk chunk = kind_.pool->Acquire(kind_.chunk_bytes);
  int code = MPI_Irecv(chunk.buffer.get(), static_cast<int>(chunk.capacity), MPI_BYTE, peer_,
                       MpiTagOf(kind_.tag), kind_.comm, &chunk.request);
  if (code != MPI_SUCCESS) return MpiError(Format("receiving from rank {}", peer_), code);
  posted_.push_back(std::move(chunk));
  return Status::Ok();
}

Status InStream::Arrive(Chunk chunk) {
  std::memcpy(&chunk.header, chunk.buffer.get(), sizeof(ChunkHeader));
  const ChunkHeader& header = chunk.header;
  if (header.tag != kind_.tag || header.phase != kind_.phase) {
    kind_.pool->AddStray(peer_, std::move(chunk));
    return Status::Ok();
  }
  if (header.chunk >= chunks_ || header.bytes != BytesOf(header.chunk)) {
    return Internal(
        Format("rank {} sent {} bytes as chunk {} of an operation of {} bytes: the ranks do not "
               "make the same calls",
               peer_, header.bytes, header.chunk, bytes_));
  }
  uint64_t number = header.chunk;
  if (!IsNew(number)) {  // of the next operation with this tag
    kind_.pool->AddStray(peer_, std::move(chunk));
    return Status::Ok();
  }
  arrived_.emplace(number, std::move(chunk));
  ++got_;
  return Status::Ok();
}

// More receives are posted than chunks will come, because some came as strays.
void InStream::Retract() {
  Chunk chunk = std::move(posted_.back());
  posted_.pop_back();
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(&chunk.request);
  MPI_Wait(&chunk.request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (cancelled) return kind_.pool->Release(std::move(chunk));
  std::memcpy(&chunk.header, chunk.buffer.get(), sizeof(ChunkHeader));
  kind_.pool->AddStray(peer_, std::move(chunk));
}

Result<Turn> InStream::Step() {
  if (got_ == chunks_ && posted_.empty()) return Turn::kIdle;
  size_t before = got_;
  while (got_ < chunks_) {
    Chunk stray = kind_.pool->PopStray(peer_, kind_.tag, kind_.phase,
                                       [this](uint64_t chunk) { return IsNew(chunk); });
    if (stray.buffer == nullptr) break;
    if (Status status = Arrive(std::move(stray)); !status.ok()) return status;
  }
  while (!posted_.empty()) {
    int complete = 0;
    int code = MPI_Test(&posted_.front().request, &complete, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(Format("receiving from rank {}", peer_), code);
    if (!complete) break;
    Chunk chunk = std::move(posted_.front());
    posted_.pop_front();
    if (Status status = Arrive(std::move(chunk)); !status.ok()) return status;
  }
  while (posted_.size() > chunks_ - got_) Retract();
  while (posted_.size() < chunks_ - got_ && posted_.size() + arrived_.size() < kWindow) {
    if (Status status = Post(); !status.ok()) return status;
  }
  return got_ == before ? Turn::kIdle : Turn::kMoved;
}

// A receive that has not been matched is cancelled. MPI may still write to a matched one, into
// memory that is kept.
InStream::~InStream() {
  for (Chunk& chunk : posted_) {
    MPI_Status status;
    int complete = 0, cancelled = 0;
    MPI_Cancel(&chunk.request);
    MPI_Test(&chunk.request, &complete, &status);
    if (complete) MPI_Test_cancelled(&status, &cancelled);
    cancelled ? kind_.pool->Release(std::move(chunk))
              : kind_.pool->GiveUpOn(std::move(chunk), Format("data from rank {}", peer_));
  }
}

}  // namespace hvd
