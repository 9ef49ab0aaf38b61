#include "runtime/backends/mpi/mpi_mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kMpiTag = 1;

struct MessageHeader {
  uint64_t tag = 0;
  uint32_t from = 0;
  MpiMailbox::Kind kind = MpiMailbox::Kind::kMessage;
};

constexpr size_t kMostBytes = sizeof(MessageHeader) + kMaxInterHostMessage;

}  // namespace

Status MpiMailbox::Post() {
  MutexLock lock(pump_);
  buffer_ = std::make_unique_for_overwrite<std::byte[]>(kMostBytes);
  return PostLocked();
}

Status MpiMailbox::PostLocked() {
  int code = MPI_Irecv(buffer_.get(), static_cast<int>(kMostBytes), MPI_BYTE, MPI_ANY_SOURCE,
                       kMpiTag, comm_, &request_);
  return code == MPI_SUCCESS ? Status::Ok() : MpiError("receiving small messages", code);
}

Result<bool> MpiMailbox::Pump() {
  if (!pump_.try_lock()) return false;
  Result<bool> came = PumpLocked();
  pump_.unlock();
  return came;
}

Result<bool> MpiMailbox::PumpLocked() {
  if (request_ == MPI_REQUEST_NULL) return false;
  MPI_Status arrived;
  int complete = 0;
  int code = MPI_Test(&request_, &complete, &arrived);
  if (code != MPI_SUCCESS) return MpiError("receiving small messages", code);
  if (!complete) return false;
  int bytes = 0;
  MPI_Get_count(&arrived, MPI_BYTE, &bytes);
  Status status = Accept(static_cast<size_t>(bytes));
  if (status.ok()) status = PostLocked();
  if (!status.ok()) return status;
  return true;
}

Status MpiMailbox::Accept(size_t bytes) {
  MessageHeader header;
  if (bytes < sizeof(header)) return Internal("a small message over MPI has no header");
  std::memcpy(&header, buffer_.get(), sizeof(header));
  InterHostMessage message{
      header.from, std::string(reinterpret_cast<const char*>(buffer_.get()) + sizeof(header),
                               bytes - sizeof(header))};
  if (header.kind == Kind::kAbort) return Aborted(std::move(message.bytes));
  MutexLock lock(mutex_);
  if (header.kind == Kind::kLeave) {
    left_.emplace(header.from, SteadyNow());
    some_left_.store(true, std::memory_order_release);
    return Status::Ok();
  }
  messages_[header.tag].push_back(std::move(message));
  return Status::Ok();
}

std::optional<InterHostMessage> MpiMailbox::Pop(uint32_t rank, uint64_t tag) {
  MutexLock lock(mutex_);
  auto found = messages_.find(tag);
  if (found == messages_.end()) return std::nullopt;
  std::deque<InterHostMessage>& queue = found->second;
  auto message = std::find_if(queue.begin(), queue.end(), [&](const InterHostMessage& one) {
    return rank == kAnyLeader || one.from == rank;
  });
  if (message == queue.end()) return std::nullopt;
  InterHostMessage taken = std::move(*message);
  queue.erase(message);
  if (queue.empty()) messages_.erase(found);
  return taken;
}

Result<MpiMailbox::Sending> MpiMailbox::Begin(uint32_t rank, uint64_t tag,
                                              std::span<const std::byte> bytes, Kind kind) {
  int self = 0;
  MPI_Comm_rank(comm_, &self);
  MessageHeader header{tag, static_cast<uint32_t>(self), kind};
  Sending sending;
  sending.buffer = std::make_unique_for_overwrite<std::byte[]>(sizeof(header) + bytes.size());
  std::memcpy(sending.buffer.get(), &header, sizeof(header));
  if (!bytes.empty()) {
    std::memcpy(sending.buffer.get() + sizeof(header), bytes.data(), bytes.size());
  }
  int code = MPI_Isend(sending.buffer.get(), static_cast<int>(sizeof(header) + bytes.size()),
                       MPI_BYTE, static_cast<int>(rank), kMpiTag, comm_, &sending.request);
  if (code != MPI_SUCCESS) {
    return MpiError(Format("sending a small message to rank {}", rank), code);
  }
  return sending;
}

void MpiMailbox::Notify(const std::set<uint32_t>& ranks, Kind kind, const std::string& reason) {
  for (uint32_t rank : ranks) {
    Result<Sending> notice = Begin(rank, 0, std::as_bytes(std::span(reason)), kind);
    if (!notice.ok()) continue;
    int complete = 0;
    MPI_Test(&notice->request, &complete, MPI_STATUS_IGNORE);
    if (!complete) library_.Keep(std::move(notice->buffer));
  }
}

std::optional<TimePoint> MpiMailbox::LeftSince(uint32_t rank) {
  if (!some_left_.load(std::memory_order_acquire)) return std::nullopt;
  MutexLock lock(mutex_);
  auto found = left_.find(rank);
  return found == left_.end() ? std::nullopt : std::optional(found->second);
}

void MpiMailbox::Close() {
  MutexLock lock(pump_);
  if (request_ == MPI_REQUEST_NULL) return;
  int complete = 0;
  MPI_Cancel(&request_);
  MPI_Test(&request_, &complete, MPI_STATUS_IGNORE);
  if (!complete) library_.GiveUpOn(std::move(buffer_), "the receive for small messages");
  request_ = MPI_REQUEST_NULL;
}

}  // namespace hvd
