#include "runtime/backends/mpi/mpi_inter_host_comm.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kLargestChunk = size_t{256} << 10;
constexpr size_t kSmallestChunk = size_t{16} << 10;
constexpr size_t kMemoryForChunks = size_t{128} << 20;
// Up to this many bytes from all leaders together, every leader receives everything and adds it up
// itself.
constexpr size_t kSmallAllreduceBytes = size_t{64} << 10;
constexpr Duration kGraceAfterLeave = std::chrono::milliseconds(500);

// The same on all ranks; a power of two with the header.
size_t ChunkBytes(size_t leaders) {
  size_t share = std::bit_floor(kMemoryForChunks / (8 * leaders) | size_t{1});
  return std::clamp(share, kSmallestChunk, kLargestChunk) - sizeof(ChunkHeader);
}

std::string Coordination(const char* collective, size_t bytes, const InterHostCall& call) {
  return Format("{}{} of {} bytes over MPI by {} hosts", "the ", collective, bytes,
                call.group.leaders.size());
}

size_t Sum(std::span<const size_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

Status CanCombine(const InterHostCall& call) {
  if (call.group.leaders.size() > 4096) {
    return Unsupported(Format("MPI combines the parts of 4,096 hosts at most; this world has {}",
                              call.group.leaders.size()));
  }
  return Status::Ok();
}

}  // namespace

Status MpiInterHostComm::Open() {
  Status status;
  library_.Run([&] { status = mailbox_.Post(); });
  return status;
}

MpiInterHostComm::~MpiInterHostComm() {
  std::set<uint32_t> notified;
  {
    MutexLock lock(mutex_);
    notified = met_;
  }
  notified.erase(rank_);
  library_.Run([&] {
    if (!aborted_) mailbox_.Notify(notified, MpiMailbox::Kind::kLeave, "");
    mailbox_.Close();
  });
}

// ---- whether to continue

Status MpiInterHostComm::Fail(Status why) {
  MutexLock lock(mutex_);
  if (!aborted_.load(std::memory_order_relaxed)) {
    why_ = std::move(why);
    aborted_.store(true, std::memory_order_release);
  }
  return why_;
}

Status MpiInterHostComm::CheckHealth() {
  for (;;) {
    if (aborted_.load(std::memory_order_acquire)) {
      MutexLock lock(mutex_);
      return why_;
    }
    Result<bool> came = mailbox_.Pump();
    if (!came.ok()) return Fail(came.status());
    if (!*came) return Status::Ok();
  }
}

void MpiInterHostComm::Meet(std::span<const uint32_t> leaders) {
  MutexLock lock(mutex_);
  met_.insert(leaders.begin(), leaders.end());
}

void MpiInterHostComm::Abort(const Status& why) {
  std::set<uint32_t> notified;
  {
    MutexLock lock(mutex_);
    if (aborted_.load(std::memory_order_relaxed)) return;
    why_ = why;
    aborted_.store(true, std::memory_order_release);
    notified = met_;
  }
  notified.insert(neighbours_.begin(), neighbours_.end());
  notified.erase(rank_);
  std::string reason = why.message().substr(0, 1000);
  library_.Run([&] { mailbox_.Notify(notified, MpiMailbox::Kind::kAbort, reason); });
  library_.GiveUpOn(nullptr, reason);
}

// Messages that it sent before it left may still be in flight.
bool MpiInterHostComm::HasLeft(uint32_t rank) {
  std::optional<TimePoint> since = mailbox_.LeftSince(rank);
  return since && SteadyNow() - *since > kGraceAfterLeave;
}

Status MpiInterHostComm::Check(const InterHostCall& call) {
  const LeaderGroup& group = call.group;
  if (group.index >= group.leaders.size() || group.leaders[group.index] != rank_) {
    return InvalidArgument(Format("rank {} is not where the group of hosts has it", rank_));
  }
  Meet(group.leaders);
  return Status::Ok();
}

Status MpiInterHostComm::WithRank(Status status) const {
  if (status.ok() || status.code() == Code::kAborted) return status;
  return Status(status.code(), Format("rank {}: {}", rank_, status.message()));
}

Status MpiInterHostComm::Perform(const InterHostCall& call, uint64_t phase, const std::string& what,
                                 const std::function<void(Exchange&)>& fill) {
  StreamKind kind{.pool = &pool_,
                  .comm = data_,
                  .tag = call.tag,
                  .phase = phase,
                  .chunk_bytes = ChunkBytes(call.group.leaders.size())};
  std::optional<Exchange> exchange(
      std::in_place, kind, what, [this] { return CheckHealth(); },
      [this](int rank) { return HasLeft(static_cast<uint32_t>(rank)); });
  fill(*exchange);
  Status status = WithRank(library_.DriveWhileMoving(*exchange, call.idle_limit));
  if (!status.ok()) {
    library_.Run([&] { exchange.reset(); });
    library_.GiveUpOn(nullptr, what);
  }
  return status;
}

// ---- collectives

Status MpiInterHostComm::Gather(const InterHostCall& call, uint64_t phase, const std::string& what,
                                const void* input, std::span<const size_t> bytes, void* output) {
  const LeaderGroup& group = call.group;
  const auto* own = static_cast<const std::byte*>(input);
  auto* all = static_cast<std::byte*>(output);
  size_t before = Sum(bytes.first(group.index)), own_bytes = bytes[group.index];
  if (own_bytes != 0 && own != all + before) std::memmove(all + before, own, own_bytes);
  return Perform(call, phase, what, [&](Exchange& exchange) {
    size_t offset = 0;
    for (size_t i = 0; i < group.leaders.size(); offset += bytes[i], ++i) {
      if (i == group.index) continue;
      int peer = static_cast<int>(group.leaders[i]);
      exchange.Receive(peer, all + offset, bytes[i]);
      exchange.Send(peer, all + before, own_bytes);
    }
  });
}

Status MpiInterHostComm::Allgatherv(const InterHostCall& call, const void* input,
                                    std::span<const size_t> bytes, void* output) {
  HVD_RETURN_IF_ERROR(Check(call));
  return Gather(call, 0, Coordination("allgather", Sum(bytes), call), input, bytes, output);
}

Status MpiInterHostComm::Alltoallv(const InterHostCall& call, const void* input,
                                   std::span<const size_t> send_bytes, void* output,
                                   std::span<const size_t> receive_bytes) {
  HVD_RETURN_IF_ERROR(Check(call));
  const LeaderGroup& group = call.group;
  const auto* from = static_cast<const std::byte*>(input);
  auto* to = static_cast<std::byte*>(output);
  std::string what = Coordination("alltoall", Sum(send_bytes), call);
  return Perform(call, 0, what, [&](Exchange& exchange) {
    size_t sent = 0, received = 0;
    for (size_t i = 0; i < group.leaders.size(); ++i) {
      int peer = static_cast<int>(group.leaders[i]);
      if (i != group.index) {
        exchange.Send(peer, from + sent, send_bytes[i]);
        exchange.Receive(peer, to + received, receive_bytes[i]);
      } else if (send_bytes[i] != 0) {
        std::memcpy(to + received, from + sent, send_bytes[i]);
      }
      sent += send_bytes[i];
      received += receive_bytes[i];
    }
  });
}

// A binomial tree; each chunk is forwarded as soon as it has arrived.
Status MpiInterHostComm::Broadcast(const InterHostCall& call, uint32_t root, void* data,
                                   size_t bytes) {
  HVD_RETURN_IF_ERROR(Check(call));
  const LeaderGroup& group = call.group;
  size_t size = group.leaders.size(), place = (group.index + size - root) % size;
  auto peer = [&](size_t of) { return static_cast<int>(group.leaders[(of + root) % size]); };
  auto* memory = static_cast<std::byte*>(data);
  call.ReportAlgorithm(TraceAlgorithm::kTree);
  return Perform(call, 0, Coordination("broadcast", bytes, call), [&](Exchange& exchange) {
    size_t reach = place == 0 ? std::bit_ceil(size) : place & -place;
    for (size_t step = reach / 2; step > 0; step /= 2) {
      if (place + step < size) exchange.Send(peer(place + step), memory, bytes);
    }
    if (place == 0 || bytes == 0) return;
    for (OutStream& out : exchange.outs()) out.Allow(0);
    InStream* in = exchange.Receive(peer(place & (place - 1)), bytes);
    exchange.OnArrival([in, memory, &exchange] {
      for (; in->ready(); in->Pop()) {
        std::span<const std::byte> chunk = in->front();
        std::memcpy(memory + in->offset(), chunk.data(), chunk.size());
        for (OutStream& out : exchange.outs()) out.Allow(in->offset() + chunk.size());
      }
    });
  });
}

// Every leader combines its part of all inputs, chunk by chunk as soon as all have sent it.
Status MpiInterHostComm::ReduceScatter(const InterHostCall& call, const std::string& what,
                                       const ReduceSpec& spec, const std::byte* input,
                                       std::span<const size_t> counts, std::byte* output) {
  const LeaderGroup& group = call.group;
  size_t element = SizeOf(spec.dtype), own_bytes = counts[group.index] * element;
  const std::byte* own = input + Sum(counts.first(group.index)) * element;
  std::vector<InStream*> ins;
  auto combine = [&, element] {
    auto ready = [](InStream* in) { return in == nullptr || in->ready(); };
    while (std::all_of(ins.begin(), ins.end(), ready)) {
      InStream* any = ins[group.index == 0 ? 1 : 0];
      size_t offset = any->offset(), count = any->front().size() / element;
      std::vector<const void*> parts;
      for (InStream* in : ins) {
        parts.push_back(in == nullptr ? own + offset
                                      : static_cast<const void*>(in->front().data()));
      }
      void* result = output + offset;
      ReduceRange(spec, parts, std::span(&result, 1), 0, count);
      for (InStream* in : ins) {
        if (in != nullptr) in->Pop();
      }
    }
  };
  return Perform(call, 0, what, [&](Exchange& exchange) {
    size_t offset = 0;
    for (size_t i = 0; i < group.leaders.size(); offset += counts[i] * element, ++i) {
      int peer = static_cast<int>(group.leaders[i]);
      bool self = i == group.index;
      if (!self) exchange.Send(peer, input + offset, counts[i] * element);
      if (own_bytes != 0) ins.push_back(self ? nullptr : exchange.Receive(peer, own_bytes));
    }
    if (own_bytes != 0) exchange.OnArrival(combine);
  });
}

Status MpiInterHostComm::Reducescatterv(const InterHostCall& call, const ReduceSpec& spec,
                                        const void* input, std::span<const size_t> counts,
                                        void* output) {
  HVD_RETURN_IF_ERROR(CanCombine(call));
  HVD_RETURN_IF_ERROR(Check(call));
  const auto* from = static_cast<const std::byte*>(input);
  size_t bytes = Sum(counts) * SizeOf(spec.dtype);
  if (call.group.leaders.size() == 1) {
    ReduceRange(spec, std::span(&input, 1), std::span(&output, 1), 0, counts[0]);
    return Status::Ok();
  }
  return ReduceScatter(call, Coordination("reducescatter", bytes, call), spec, from, counts,
                       static_cast<std::byte*>(output));
}

Status MpiInterHostComm::ReduceGathered(const InterHostCall& call, const std::string& what,
                                        const ReduceSpec& spec, const void* input, void* output,
                                        size_t count) {
  size_t size = call.group.leaders.size(), bytes = count * SizeOf(spec.dtype);
  std::vector<size_t> lengths(size, bytes);
  std::vector<std::byte> all(size * bytes);
  Status status = Gather(call, 0, what, input, lengths, all.data());
  if (!status.ok()) return status;
  std::vector<const void*> parts;
  for (size_t i = 0; i < size; ++i) parts.push_back(all.data() + i * bytes);
  ReduceRange(spec, parts, std::span(&output, 1), 0, count);
  return status;
}

Status MpiInterHostComm::Allreduce(const InterHostCall& call, const ReduceSpec& spec,
                                   const void* input, void* output, size_t count) {
  HVD_RETURN_IF_ERROR(CanCombine(call));
  HVD_RETURN_IF_ERROR(Check(call));
  size_t size = call.group.leaders.size(), element = SizeOf(spec.dtype);
  if (size == 1 || count == 0) {
    ReduceRange(spec, std::span(&input, 1), std::span(&output, 1), 0, count);
    return Status::Ok();
  }
  std::string what = Coordination("allreduce", count * element, call);
  const bool small = size * count * element <= kSmallAllreduceBytes;
  call.ReportAlgorithm(small ? TraceAlgorithm::kDirect : TraceAlgorithm::kSliced);
  if (small) {
    return ReduceGathered(call, what, spec, input, output, count);
  }
  std::vector<size_t> counts(size, count / size);
  for (size_t i = 0; i < count % size; ++i) ++counts[i];
  std::byte* own =
      static_cast<std::byte*>(output) + Sum(std::span(counts).first(call.group.index)) * element;
  Status status =
      ReduceScatter(call, what, spec, static_cast<const std::byte*>(input), counts, own);
  if (!status.ok()) return status;
  for (size_t& part : counts) part *= element;
  return Gather(call, 1, what, own, counts, output);
}

// ---- small messages

namespace {

class SendActivity final : public Activity {
 public:
  SendActivity(MpiMailbox::Sending& sending, uint32_t to, std::function<Status()> look)
      : sending_(sending), to_(to), look_(std::move(look)) {}
  Result<Turn> Step() override {
    HVD_RETURN_IF_ERROR(look_());
    int complete = 0;
    int code = MPI_Test(&sending_.request, &complete, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(Format("sending to rank {}", to_), code);
    return complete ? Turn::kDone : Turn::kIdle;
  }
  std::string Waiting() const override {
    return Format("a small message over MPI waits until rank {} reads it", to_);
  }

 private:
  MpiMailbox::Sending& sending_;
  uint32_t to_;
  std::function<Status()> look_;
};

class ReceiveActivity final : public Activity {
 public:
  ReceiveActivity(std::function<Result<Turn>()> step, uint32_t from)
      : step_(std::move(step)), from_(from) {}
  Result<Turn> Step() override { return step_(); }
  std::string Waiting() const override {
    return "a small message over MPI is awaited from " +
           (from_ == kAnyLeader ? "any rank" : Format("rank {}", from_));
  }

 private:
  std::function<Result<Turn>()> step_;
  uint32_t from_;
};

}  // namespace

Status MpiInterHostComm::Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                              TimePoint deadline) {
  if (bytes.size() > kMaxInterHostMessage) {
    return InvalidArgument(Format("a small message has at most {} bytes; this one has {}",
                                  kMaxInterHostMessage, bytes.size()));
  }
  Meet(std::span(&rank, 1));
  Result<MpiMailbox::Sending> sending = Internal("not sent");
  library_.Run([&] {
    Status status = CheckHealth();
    if (status.ok()) {
      sending = mailbox_.Begin(rank, tag, bytes);
    } else {
      sending = status;
    }
  });
  if (!sending.ok()) return sending.status();
  SendActivity activity(*sending, rank, [this] { return CheckHealth(); });
  Status status = WithRank(library_.Drive(activity, deadline));
  if (!status.ok()) {
    library_.GiveUpOn(std::move(sending->buffer), Format("a small message to rank {}", rank));
  }
  return status;
}

Result<InterHostMessage> MpiInterHostComm::Receive(uint32_t rank, uint64_t tag,
                                                   TimePoint deadline) {
  std::optional<InterHostMessage> message;
  auto step = [&]() -> Result<Turn> {
    HVD_RETURN_IF_ERROR(CheckHealth());
    message = mailbox_.Pop(rank, tag);
    if (message) return Turn::kDone;
    if (rank != kAnyLeader && mailbox_.LeftSince(rank)) {
      return Aborted(
          Format("rank {} has left the world, and a small message from it is awaited", rank));
    }
    if (woken_.exchange(false, std::memory_order_acq_rel)) {
      return Status(Code::kInProgress, "woken");
    }
    return Turn::kIdle;
  };
  ReceiveActivity activity(step, rank);
  HVD_RETURN_IF_ERROR(WithRank(library_.Drive(activity, deadline)));
  return std::move(*message);
}

}  // namespace hvd
