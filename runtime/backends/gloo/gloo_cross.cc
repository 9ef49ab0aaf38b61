#include "runtime/backends/gloo/gloo_cross.h"

#include <cstring>
#include <numeric>

#include "runtime/backends/gloo/direct.h"

namespace hvd {
namespace {

// Apart from the slots of the collectives.
constexpr uint64_t kMessageSlot = uint64_t{0x50} << 56;
// Groups are cheap to make again; dynamic process sets may come and go for ever.
constexpr size_t kMostGroups = 256;
// Beyond so many leaders everybody's adding everything costs more than the second exchange.
constexpr size_t kFewLeaders = 16;
// What a leader may receive in one step; measured on loopback with 2, 3 and 4 leaders.
constexpr size_t kDirectBytes = 256 * 1024;

Status CheckCall(const CrossCall& call, size_t counts) {
  if (call.group.index < call.group.leaders.size() && counts == call.group.leaders.size()) {
    return Status::Ok();
  }
  return Internal("a call of leader " + std::to_string(call.group.index) + " with " +
                  std::to_string(counts) + " counts in a group of " +
                  std::to_string(call.group.leaders.size()));
}

size_t Sum(std::span<const size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

bool IsAlone(const CrossCall& call) { return call.group.leaders.size() == 1; }

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

Result<std::unique_ptr<GlooCross>> GlooCross::Open(const CrossOptions& options,
                                                   Directory& directory) {
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open({.rank = options.rank,
                                                   .epoch = options.epoch,
                                                   .job_key = options.job_key,
                                                   .listen = options.listen,
                                                   .connect_timeout = options.connect_timeout,
                                                   .spin = options.spin},
                                                  directory);
  if (!mesh.ok()) return mesh.status();
  return std::unique_ptr<GlooCross>(new GlooCross(std::move(*mesh)));
}

std::shared_ptr<GlooCollectives> GlooCross::Group(const CrossGroup& group) {
  std::lock_guard lock(mutex_);
  if (groups_.size() >= kMostGroups) groups_.clear();
  std::vector<uint32_t> leaders(group.leaders.begin(), group.leaders.end());
  std::shared_ptr<GlooCollectives>& collectives = groups_[std::move(leaders)];
  if (collectives == nullptr) collectives = std::make_shared<GlooCollectives>(*mesh_, group);
  return collectives;
}

AllreduceWay ChooseAllreduce(size_t bytes, size_t leaders) {
  const bool direct = leaders <= kFewLeaders && bytes * (leaders - 1) <= kDirectBytes;
  return direct ? AllreduceWay::kDirect : AllreduceWay::kSliced;
}

Status GlooCross::Allreduce(const CrossCall& call, const ReduceSpec& spec, const void* input,
                            void* output, size_t count) {
  size_t bytes = count * SizeOf(spec.dtype);
  return AllreduceBy(ChooseAllreduce(bytes, call.group.leaders.size()), call, spec, input, output,
                     count);
}

Status GlooCross::AllreduceBy(AllreduceWay way, const CrossCall& call, const ReduceSpec& spec,
                              const void* input, void* output, size_t count) {
  if (Status good = CheckCall(call, call.group.leaders.size()); !good.ok()) return good;
  if (IsAlone(call) || count == 0) {
    ReduceRange(spec, {&input, 1}, {&output, 1}, 0, count);
    return Status::Ok();
  }
  auto* carry = way == AllreduceWay::kDirect ? DirectAllreduce : SlicedAllreduce;
  return carry(*mesh_, scratch_, call, spec, input, output, count);
}

Status GlooCross::Broadcast(const CrossCall& call, uint32_t root, void* data, size_t bytes) {
  if (Status good = CheckCall(call, call.group.leaders.size()); !good.ok()) return good;
  if (IsAlone(call) || bytes == 0) return Status::Ok();
  return Group(call.group)->Broadcast(call, root, data, bytes);
}

Status GlooCross::Allgatherv(const CrossCall& call, const void* input,
                             std::span<const size_t> bytes, void* output) {
  if (Status good = CheckCall(call, bytes.size()); !good.ok()) return good;
  if (IsAlone(call)) {
    Copy(output, input, bytes[0]);
    return Status::Ok();
  }
  if (Sum(bytes) == 0) return Status::Ok();
  return Group(call.group)->Allgatherv(call, input, bytes, output);
}

Status GlooCross::Alltoallv(const CrossCall& call, const void* input,
                            std::span<const size_t> send_bytes, void* output,
                            std::span<const size_t> receive_bytes) {
  if (Status good = CheckCall(call, send_bytes.size()); !good.ok()) return good;
  if (Status good = CheckCall(call, receive_bytes.size()); !good.ok()) return good;
  if (IsAlone(call)) {
    Copy(output, input, send_bytes[0]);
    return Status::Ok();
  }
  return Group(call.group)->Alltoallv(call, input, send_bytes, output, receive_bytes);
}

Status GlooCross::Reducescatterv(const CrossCall& call, const ReduceSpec& spec, const void* input,
                                 std::span<const size_t> counts, void* output) {
  if (Status good = CheckCall(call, counts.size()); !good.ok()) return good;
  if (IsAlone(call)) {
    ReduceRange(spec, {&input, 1}, {&output, 1}, 0, counts[0]);
    return Status::Ok();
  }
  return DirectReducescatterv(*mesh_, scratch_, call, spec, input, counts, output);
}

Status GlooCross::Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                       TimePoint deadline) {
  if (bytes.size() > kMaxCrossMessage) {
    return InvalidArgument("a small message of " + std::to_string(bytes.size()) +
                           " bytes; at most " + std::to_string(kMaxCrossMessage) + " are allowed");
  }
  MeshHandle handle = mesh_->Send(rank, {tag, kMessageSlot}, bytes);
  return mesh_->Wait(handle, deadline);
}

Result<CrossMessage> GlooCross::Receive(uint32_t rank, uint64_t tag, TimePoint deadline) {
  static_assert(kAnyLeader == kAnyMeshPeer && kMaxCrossMessage <= kMeshEagerBytes);
  MeshHandle handle = mesh_->ReceiveSmall(rank, {tag, kMessageSlot});
  Result<MeshMessage> message = mesh_->WaitSmall(handle, deadline);
  if (!message.ok()) return message.status();
  return CrossMessage{message->from, std::move(message->bytes)};
}

std::vector<CrossSilence> GlooCross::Silences() const {
  std::vector<CrossSilence> silences;
  for (const MeshSilence& silence : mesh_->Silences()) {
    silences.push_back({silence.rank, silence.silent});
  }
  return silences;
}

}  // namespace hvd
