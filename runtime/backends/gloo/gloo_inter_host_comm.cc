#include "runtime/backends/gloo/gloo_inter_host_comm.h"

#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/backends/gloo/direct.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Groups are cheap to create again; dynamic process sets may come and go without end.
constexpr size_t kMostGroups = 256;

Status CheckCall(const InterHostCall& call, size_t counts) {
  if (call.group.index < call.group.leaders.size() && counts == call.group.leaders.size()) {
    return Status::Ok();
  }
  return Internal(Format("a call of leader {} with {} counts in a group of {}", call.group.index,
                         counts, call.group.leaders.size()));
}

size_t Sum(std::span<const size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

bool IsAlone(const InterHostCall& call) { return call.group.leaders.size() == 1; }

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

// The slot of small messages, distinct from those of the collectives.
constexpr uint64_t kMessageSlot = uint64_t{0x50} << 56;

// Refuses a message that is too long.
Status CheckMessage(size_t bytes) {
  if (bytes <= kMaxInterHostMessage) return Status::Ok();
  return InvalidArgument(
      Format("a small message of {} bytes; at most {} are allowed", bytes, kMaxInterHostMessage));
}

}  // namespace

Result<std::unique_ptr<GlooInterHostComm>> GlooInterHostComm::Open(const InterHostOptions& options,
                                                                   KvStore& directory) {
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open({.rank = options.rank,
                                                   .generation = options.generation,
                                                   .job_key = options.job_key,
                                                   .listen = options.listen,
                                                   .connect_timeout = options.connect_timeout,
                                                   .spin = options.spin},
                                                  directory);
  if (!mesh.ok()) return mesh.status();
  return std::unique_ptr<GlooInterHostComm>(new GlooInterHostComm(std::move(*mesh)));
}

std::shared_ptr<GlooCollectives> GlooInterHostComm::Group(const LeaderGroup& group) {
  MutexLock lock(mutex_);
  if (groups_.size() >= kMostGroups) groups_.clear();
  std::vector<uint32_t> leaders(group.leaders.begin(), group.leaders.end());
  std::shared_ptr<GlooCollectives>& collectives = groups_[std::move(leaders)];
  if (collectives == nullptr) collectives = std::make_shared<GlooCollectives>(*mesh_, group);
  return collectives;
}

Status GlooInterHostComm::Allreduce(const InterHostCall& call, const ReduceSpec& spec,
                                    const void* input, void* output, size_t count) {
  size_t bytes = count * SizeOf(spec.dtype);
  return AllreduceBy(ChooseAllreduce(bytes, call.group.leaders.size()), call, spec, input, output,
                     count);
}

Status GlooInterHostComm::AllreduceBy(AllreduceAlgorithm algorithm, const InterHostCall& call,
                                      const ReduceSpec& spec, const void* input, void* output,
                                      size_t count) {
  HVD_RETURN_IF_ERROR(CheckCall(call, call.group.leaders.size()));
  if (IsAlone(call) || count == 0) {
    if (call.copies != nullptr) call.copies->Fill(0, count);
    ReduceRange(spec, {&input, 1}, {&output, 1}, 0, count);
    if (call.copies != nullptr) call.copies->Deliver(0, count);
    return Status::Ok();
  }
  const auto make = algorithm == AllreduceAlgorithm::kSliced ? SlicedAllreduce : DirectAllreduce;
  return make(*mesh_, scratch_, call, spec, input, output, count);
}

Status GlooInterHostComm::Broadcast(const InterHostCall& call, uint32_t root, void* data,
                                    size_t bytes) {
  HVD_RETURN_IF_ERROR(CheckCall(call, call.group.leaders.size()));
  if (IsAlone(call) || bytes == 0) return Status::Ok();
  return Group(call.group)->Broadcast(call, root, data, bytes);
}

Status GlooInterHostComm::Allgatherv(const InterHostCall& call, const void* input,
                                     std::span<const size_t> bytes, void* output) {
  HVD_RETURN_IF_ERROR(CheckCall(call, bytes.size()));
  if (IsAlone(call)) {
    Copy(output, input, bytes[0]);
    return Status::Ok();
  }
  if (Sum(bytes) == 0) return Status::Ok();
  return Group(call.group)->Allgatherv(call, input, bytes, output);
}

Status GlooInterHostComm::Alltoallv(const InterHostCall& call, const void* input,
                                    std::span<const size_t> send_bytes, void* output,
                                    std::span<const size_t> receive_bytes) {
  HVD_RETURN_IF_ERROR(CheckCall(call, send_bytes.size()));
  HVD_RETURN_IF_ERROR(CheckCall(call, receive_bytes.size()));
  if (IsAlone(call)) {
    Copy(output, input, send_bytes[0]);
    return Status::Ok();
  }
  return Group(call.group)->Alltoallv(call, input, send_bytes, output, receive_bytes);
}

Status GlooInterHostComm::Reducescatterv(const InterHostCall& call, const ReduceSpec& spec,
                                         const void* input, std::span<const size_t> counts,
                                         void* output) {
  HVD_RETURN_IF_ERROR(CheckCall(call, counts.size()));
  if (IsAlone(call)) {
    ReduceRange(spec, {&input, 1}, {&output, 1}, 0, counts[0]);
    return Status::Ok();
  }
  call.ReportAlgorithm(TraceAlgorithm::kDirect);
  return DirectReducescatterv(*mesh_, scratch_, call, spec, input, counts, output);
}

Status GlooInterHostComm::Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                               TimePoint deadline) {
  HVD_RETURN_IF_ERROR(CheckMessage(bytes.size()));
  MeshHandle handle = mesh_->Send(rank, {tag, kMessageSlot}, bytes);
  return mesh_->Wait(handle, deadline);
}

Result<InterHostMessage> GlooInterHostComm::Receive(uint32_t rank, uint64_t tag,
                                                    TimePoint deadline) {
  static_assert(kAnyLeader == kAnyMeshPeer && kMaxInterHostMessage <= kMeshEagerBytes);
  return ReceiveMessage(rank, tag, deadline, MeshPatience::kSleeps);
}

Result<InterHostMessage> GlooInterHostComm::Await(uint32_t rank, uint64_t tag, TimePoint deadline) {
  return ReceiveMessage(rank, tag, deadline, MeshPatience::kSpins);
}

Result<InterHostMessage> GlooInterHostComm::ReceiveMessage(uint32_t rank, uint64_t tag,
                                                           TimePoint deadline,
                                                           MeshPatience patience) {
  Result<MeshMessage> message = mesh_->ReceiveSmall(rank, {tag, kMessageSlot}, deadline, patience);
  if (!message.ok()) return std::move(message).status();
  return InterHostMessage{message->from, std::move(message->bytes)};
}

std::vector<InterHostSilence> GlooInterHostComm::Silences() const {
  std::vector<InterHostSilence> silences;
  for (const MeshSilence& silence : mesh_->Silences()) {
    silences.push_back({silence.rank, silence.silent});
  }
  return silences;
}

std::vector<InterHostLink> GlooInterHostComm::Links() const {
  std::vector<InterHostLink> links;
  for (const MeshLink& link : mesh_->Links())
    links.push_back({link.rank, link.bytes, link.busy_us});
  return links;
}

Status GlooSteps::Post(uint32_t rank, uint64_t tag, MessageBytes bytes) {
  HVD_RETURN_IF_ERROR(CheckMessage(bytes.size()));
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(DropGone());
  auto posted = std::make_unique<Posted>();
  posted->bytes = std::move(bytes);
  Status sent = mesh_.SendNow(rank, {tag, kMessageSlot},
                              std::as_bytes(std::span(posted->bytes.view())), &posted->handle);
  if (sent.code() != Code::kInProgress) return sent;
  posted_.push_back(std::move(posted));
  return Status::Ok();
}

// Also after a message to another peer was sent earlier than one before it.
Status GlooSteps::DropGone() {
  for (auto at = posted_.begin(); at != posted_.end();) {
    if (!mesh_.IsOver((*at)->handle)) {
      ++at;
      continue;
    }
    Status gone = mesh_.Wait((*at)->handle, TimePoint{});
    at = posted_.erase(at);
    if (!gone.ok()) return gone;
  }
  return Status::Ok();
}

Status GlooSteps::Flush(TimePoint deadline) {
  for (;;) {
    MutexLock lock(mutex_);
    HVD_RETURN_IF_ERROR(DropGone());
    if (posted_.empty()) return Status::Ok();
    Status gone = mesh_.Wait(posted_.front()->handle, deadline);
    if (!gone.ok()) return gone;
  }
}

std::unique_ptr<InterHostSum> GlooSteps::BeginSum(const InterHostCall& call, const ReduceSpec& spec,
                                                  const void* input, void* output, size_t count) {
  const AllreduceAlgorithm algorithm =
      ChooseAllreduce(count * SizeOf(spec.dtype), call.group.leaders.size());
  const auto begin =
      algorithm == AllreduceAlgorithm::kSliced ? BeginSlicedAllreduce : BeginDirectAllreduce;
  return begin(mesh_, scratch_, call, spec, input, output, count);
}

}  // namespace hvd
