#include "runtime/backends/cuda/cuda_backend.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "runtime/backends/cuda/refusal.h"
#include "runtime/backends/rank_list.h"
#include "runtime/base/hash.h"
#include "runtime/base/text/format.h"
#include "runtime/device/cuda/cuda_graph.h"
#include "runtime/device/cuda/driver_loader.h"

namespace hvd {
namespace {

using Stage = CudaOp::Stage;

constexpr Duration kLookAgain = std::chrono::microseconds(200);
// Added to the domain of an operation whose hosts have agreed to move its data themselves, so that
// its second announcement does not match a first one.
constexpr int32_t kStagedDomains = 1 << 30;

// Calls `late` once, in its own thread, if this object still exists after `limit`: for calls that
// cannot be interrupted.
class Watchdog {
 public:
  Watchdog(Duration limit, std::function<void()> late)
      : late_(std::move(late)), thread_([this, limit] { Watch(limit); }) {}
  // Waits for `late` if it was called.
  ~Watchdog() {
    {
      MutexLock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch(Duration limit) {
    {
      MutexLock lock(mutex_);
      const auto over = [this]() HVD_REQUIRES(mutex_) { return over_; };
      if (changed_.wait_for(lock, limit, over)) return;
    }
    late_();
  }

  const std::function<void()> late_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool over_ HVD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

CudaOp& OpOf(OpState* state) { return static_cast<CudaOp&>(*state); }
const CudaOp& OpOf(const OpState* state) { return static_cast<const CudaOp&>(*state); }

std::string SetName(const Group& group) {
  return group.id == 0 ? "world" : Format("process set {}", group.id);
}

// Of the members and the locations of their GPUs: the same on all members.
std::string KeyOf(const std::vector<uint64_t>& lane) {
  const std::string_view bytes(reinterpret_cast<const char*>(lane.data()),
                               lane.size() * sizeof lane[0]);
  return Format("nccl/{}", HashOf(bytes));
}

bool AllPosted(const CudaOp& op) {
  if (op.members == 1) return true;
  for (uint32_t m = 0; m < op.members; ++m) {
    if (op.controls[m] == nullptr) continue;  // has joined
    if (op.cell(m).posted.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

// Warns with the reason.
bool CanKeepGraphs(const CudaDriver& driver, const CudaBackendOptions& options) {
  const std::string missing = MissingGraphCalls(driver);
  if (missing.empty()) return true;
  if (options.warn) options.warn("there are no CUDA graphs because libcuda.so.1 has no " + missing);
  return false;
}

// Empty if a member has none.
std::vector<uint32_t> CallNumbersIn(std::span<const MemberFacts> facts) {
  std::vector<uint32_t> numbers;
  for (const MemberFacts& each : facts) {
    if (each.call_number == 0) return {};
    numbers.push_back(each.call_number);
  }
  return numbers;
}

// Where the members' turn cells are, for member 0; the others sent the locations with the
// operation.
Result<std::vector<Location>> TurnCellsOf(const CudaOp& op, std::span<const MemberFacts> facts,
                                          SharedMemoryMap& peer_memory) {
  std::vector<Location> cells;
  for (uint32_t m = 0; m < op.members && op.self == 0; ++m) {
    const Result<std::byte*> control =
        m == op.self ? op.lease.control
                     : peer_memory.Resolve(facts[m].control, CudaCell::BytesFor(op.members));
    if (!control.ok()) return control.status();
    cells.push_back(CudaCell::In(*control, op.members).turn_cell);
  }
  return cells;
}

// A batch may have to wait for one of another lane, which no thread polls at the moment.
Status PumpFor(NcclLane& lane, const auto& lanes, const RankTurns& turns, TimePoint now) {
  HVD_RETURN_IF_ERROR(lane.Pump(now));
  while (lane.awaits_turn()) {
    const uint64_t before = turns.next();
    for (const auto& [key, other] : lanes) {
      if (other.get() != &lane) (void)other->Pump(now);  // its own operations report its error
    }
    if (turns.next() == before) return Status::Ok();
    HVD_RETURN_IF_ERROR(lane.Pump(now));
  }
  return Status::Ok();
}

}  // namespace

CudaBackend::CudaBackend(CudaParts parts, CudaBackendOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      room_{*options_.host, *options_.heap, parts_.driver},
      leases_(*options_.heap),
      across_hosts_({*options_.host, *options_.peer_memory, leases_, *options_.clock,
                     [this](CudaOp& op, const auto& places) {
                       return LaneOf(op, places, [] { return std::vector<TurnCell*>(); });
                     },
                     [this](CudaOp& op) { return BeginStaged(op); }}),
      keeps_graphs_(options_.keeps_graphs && CanKeepGraphs(parts_.driver, options_)),
      host_turns_(*options_.heap, *options_.peer_memory) {}

CudaBackend::~CudaBackend() {
  Abort(Aborted("this rank has left the world"));
  CaptureGate::OfProcess().RunLate();  // no capture of this backend exists any more
  lanes_.clear();
  for (void* result : left_behind_) room_.heap.Free(result);
}

Result<CudaDevice*> CudaBackend::DeviceOf(const CollectiveCall& call) {
  const auto unusable = unusable_.find(call.device_index);
  if (unusable != unusable_.end()) return unusable->second;
  std::unique_ptr<CudaDevice>& device = devices_[call.device_index];
  if (device == nullptr) {
    Result<std::unique_ptr<CudaDevice>> opened = CudaDevice::Open(
        parts_.driver,
        {.rank = options_.rank, .ordinal = call.device_index, .kernels = parts_.kernels});
    if (opened.status().code() == Code::kAborted) unusable_[call.device_index] = opened.status();
    if (!opened.ok()) return opened.status();
    device = std::move(*opened);
  }
  return device.get();
}

// ---- before the members have agreed

Status CudaBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                            BufferDescriptor* descriptor) {
  leases_.Collect();
  auto op = std::make_unique<CudaOp>();
  op->call = call;
  op->ordinal = call.device_index;
  op->across_hosts = options_.NeedsAgreement(*call.group);
  op->self = call.group->local_index;
  op->members = call.group->local_size();
  Status prepared = op->across_hosts ? PrepareAcrossHosts(call, *op, descriptor)
                                     : Describe(call, *op, descriptor);
  if (!prepared.ok() && op->across_hosts) {
    Abandon(std::move(op), false);
    return prepared;
  }
  if (!prepared.ok()) {  // the others are notified instead of waiting
    op->stage = Stage::kRefused;
    op->refusal = Refusal(options_.rank, prepared);
    *descriptor = DescriptorOfRefusal(op->refusal);
  }
  *state = std::move(op);
  return Status::Ok();
}

Result<MemberFacts> CudaBackend::MarkAndFacts(const CollectiveCall& call, CudaOp& op) {
  const Result<CudaDevice*> device = DeviceOf(call);
  if (!device.ok()) return device.status();
  op.device = *device;
  const Result<DeviceMark> mark = op.device->Mark(call.stream);
  if (!mark.ok()) return mark.status();
  op.mark = *mark;
  op.mark_number = ++marks_;
  MemberFacts facts{.compute_capability = op.device->compute_capability(),
                    .place = op.device->place() ^ options_.place_salt};
  const bool nccl = parts_.nccl.ok() && options_.without_nccl.empty();
  if (nccl) facts.nccl_version = parts_.nccl->version;
  return facts;
}

Status CudaBackend::Describe(const CollectiveCall& call, CudaOp& op, BufferDescriptor* descriptor) {
  Result<MemberFacts> facts = MarkAndFacts(call, op);
  if (!facts.ok()) return facts.status();
  if (op.members > 1) {
    Result<Lease> lease = leases_.Open(op.members, CudaCell::BytesFor(op.members));
    if (!lease.ok()) return lease.status();
    op.lease = *lease;
    facts->control = op.lease.control_at;
    const Result<Location> cell = host_turns_.OwnCell();
    if (!cell.ok()) return cell.status();
    CudaCell::In(op.lease.control, op.members).turn_cell = *cell;
  }
  if (keeps_graphs_) facts->call_number = call_numbers_.NumberOf(call);
  *descriptor = DescriptorOf(*facts);
  return Status::Ok();
}

// A rank that cannot take part reports that to its host, which informs the others.
Status CudaBackend::PrepareAcrossHosts(const CollectiveCall& call, CudaOp& op,
                                       BufferDescriptor* descriptor) {
  const Result<MemberFacts> facts = MarkAndFacts(call, op);
  if (!facts.ok()) op.refusal = Refusal(options_.rank, facts.status());
  return across_hosts_.Prepare(op, facts.ok() ? *facts : MemberFacts{}, descriptor);
}

// ---- after they have agreed

Result<bool> CudaBackend::Start(const CollectiveCall&, OpState* state, const MemberInputs& parts) {
  CudaOp& op = OpOf(state);
  if (op.across_hosts) {
    HVD_RETURN_IF_ERROR(across_hosts_.Start(op, parts));
    return false;
  }
  if (Status refused = FirstRefusal(parts.descriptors); !refused.ok()) return refused;
  std::vector<MemberFacts> facts;
  for (const BufferDescriptor& descriptor : parts.descriptors) facts.push_back(FactsIn(descriptor));
  op.choice = ChooseRoute(op.call, facts, parts.joined);
  HVD_RETURN_IF_ERROR(StartRoute(op.call, op, parts, facts));
  return op.stage == Stage::kDone;
}

Status CudaBackend::StartRoute(const CollectiveCall& call, CudaOp& op, const MemberInputs& parts,
                               std::span<const MemberFacts> facts) {
  if (op.choice.route == CudaRoute::kAlone) return DoAlone(call, op, parts);
  HVD_RETURN_IF_ERROR(Attach(op, parts, facts));
  if (op.choice.route == CudaRoute::kNccl) {
    op.call_numbers = CallNumbersIn(facts);
    std::vector<uint64_t> places;
    for (const MemberFacts& each : facts) places.push_back(each.place);
    const auto turn_cells = [&]() -> Result<std::vector<TurnCell*>> {
      const Result<std::vector<Location>> cells = TurnCellsOf(op, facts, *options_.peer_memory);
      return cells.ok() ? host_turns_.Cells(*cells) : cells.status();
    };
    const Result<NcclLane*> lane = LaneOf(op, places, turn_cells);
    if (!lane.ok()) return lane.status();
    (*lane)->Add(op);
    return Status::Ok();
  }
  return BeginStaged(op);
}

Status CudaBackend::BeginStaged(CudaOp& op) {
  if (op.call.group->size() > 1) WarnOfStaging(op);
  op.staged = std::make_unique<StagedOp>(room_, *op.device, op.call);
  op.stage = Stage::kCopied;
  return OfThisRank(op.staged->CopyOut(op.mark));
}

Status CudaBackend::Attach(CudaOp& op, const MemberInputs& parts,
                           std::span<const MemberFacts> facts) {
  op.KeepParts(parts);
  op.received = op.rows;
  if (op.call.collective == Collective::kAlltoall) {
    op.sent = op.splits[op.self];
    for (uint32_t m = 0; m < op.members; ++m) op.received[m] = op.splits[m][op.self];
  }
  for (uint32_t m = 0; m < op.members; ++m) {
    if (op.HasJoined(m)) {
      ReleaseFlagOf(op.lease.control, m)->store(1, std::memory_order_relaxed);
      continue;
    }
    if (op.choice.route == CudaRoute::kNccl && m > 0) break;  // all they read is the order
    if (m == op.self) {
      op.controls[m] = op.lease.control;
      continue;
    }
    const Result<std::byte*> control =
        options_.peer_memory->Resolve(facts[m].control, CudaCell::BytesFor(op.members));
    if (!control.ok()) return control.status();
    op.controls[m] = *control;
  }
  return Status::Ok();
}

// A set of one: the result is the input, or a scaled copy.
Status CudaBackend::DoAlone(const CollectiveCall& call, CudaOp& op, const MemberInputs& parts) {
  op.stage = Stage::kAlone;
  uint64_t count = call.count;
  if (call.result != nullptr) call.result->rows = call.rows;
  if (call.collective == Collective::kAlltoall) {
    const int64_t rows = parts.extents[0].splits[0];
    count = static_cast<uint64_t>(rows) * call.row_count;
    call.result->rows = rows;
    call.result->received_splits = {rows};
  }
  const bool reduces =
      call.collective == Collective::kAllreduce || call.collective == Collective::kReducescatter;
  const double scale = reduces ? call.prescale * call.postscale : 1.0;
  const Result<DeviceAddress> output =
      OutputOf(room_, *op.device, op.ordinal, call, count * SizeOf(call.dtype));
  if (!output.ok()) return output.status();
  const BatchItem item{AddressOf(call.input), *output, count};
  if (count != 0 && (item.from != item.to || scale != 1.0)) {
    HVD_RETURN_IF_ERROR(op.device->BeginAfterMark(op.mark));
    HVD_RETURN_IF_ERROR(op.device->Move({call.dtype, call.dtype, scale}, {&item, 1}));
    HVD_RETURN_IF_ERROR(op.device->LetFollow(call.stream));
  }
  op.device->DropMark(std::exchange(op.mark, {}));
  op.stage = Stage::kDone;
  return Status::Ok();
}

// Sets of the same members share a lane as long as their GPUs are the same.
Result<NcclLane*> CudaBackend::LaneOf(
    CudaOp& op, const std::vector<uint64_t>& places,
    const std::function<Result<std::vector<TurnCell*>>()>& turn_cells) {
  const Group& group = *op.call.group;
  std::vector<uint64_t> key(group.ranks.begin(), group.ranks.end());
  key.insert(key.end(), places.begin(), places.end());
  const auto found = lanes_.find(key);
  if (found != lanes_.end()) return found->second.get();
  Result<std::vector<TurnCell*>> cells = turn_cells();
  if (!cells.ok()) return cells.status();
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::Open(parts_.driver, {.rank = options_.rank,
                                       .ordinal = op.ordinal,
                                       .kernels = parts_.kernels,
                                       .beside = op.device});
  if (!device.ok()) return OfThisRank(device.status());
  NcclCommOptions options{
      .member = {options_.rank, group.index, group.size(), SetName(group), (*device)->name()},
      .key = KeyOf(key),
      .start_limit = options_.start_limit,
      .close_limit = options_.close_limit,
      .store_wait = std::chrono::milliseconds(1)};
  auto lane = std::make_unique<NcclLane>(
      room_, turns_, std::move(*device), *parts_.nccl, *options_.store, std::move(options),
      options_.wake_peers,
      NcclLaneOptions{options_.waits_for_gpu, options_.registers_buffers, options_.packing_bytes,
                      options_.start_limit, std::move(*cells),
                      [this](const Status& why) { Abort(why); }},
      options_.clock->Now());
  MutexLock lock(mutex_);
  if (!aborted_.ok()) return aborted_;
  return (lanes_[key] = std::move(lane)).get();
}

// ---- in progress

Result<bool> CudaBackend::Advance(const CollectiveCall&, OpState* state) {
  CudaOp& op = OpOf(state);
  if (op.stage == Stage::kDone) return true;
  if (!op.failure.ok()) return op.failure;
  if (op.across_hosts && op.staged == nullptr && op.stage != Stage::kGiven) {
    const Result<bool> begun = across_hosts_.Advance(op);
    if (!begun.ok() || !*begun) return begun;
  }
  if (op.staged != nullptr) return AdvanceStaged(op);
  if (op.stage == Stage::kLane)
    HVD_RETURN_IF_ERROR(PumpFor(*op.lane, lanes_, turns_, options_.clock->Now()));
  if (op.stage != Stage::kGiven) return false;
  if (options_.waits_for_gpu) {
    const Result<bool> ready = op.lane->Ready(op.given);
    if (!ready.ok() || !*ready) return ready;
  }
  op.device->DropMark(std::exchange(op.mark, {}));
  if (op.across_hosts) {
    across_hosts_.ReturnLease(op);
  } else if (op.self == 0) {
    leases_.ReclaimWhenReleased(&op.lease, op.self);
  } else {
    leases_.Reclaim(&op.lease);  // not examined yet
  }
  op.stage = Stage::kDone;
  return true;
}

Result<bool> CudaBackend::AdvanceStaged(CudaOp& op) {
  if (op.stage == Stage::kCopied) {
    const Result<bool> copied = op.staged->CopiedOut();
    if (!copied.ok()) return OfThisRank(copied.status());
    if (!*copied) return false;
    BufferDescriptor own;
    HVD_RETURN_IF_ERROR(OfThisRank(op.staged->Prepare(&own)));
    HVD_RETURN_IF_ERROR(PostDescriptor(op, own));
  }
  Result<bool> done = false;
  if (op.stage == Stage::kPosted) {
    if (!AllPosted(op)) return false;
    op.stage = Stage::kHost;
    done = StartPosted(op);
  } else {
    done = op.staged->Advance();
  }
  if (!done.ok() || !*done) return done;
  HVD_RETURN_IF_ERROR(OfThisRank(op.staged->CopyIn()));
  if (op.mark.handle != 0) op.device->DropMark(std::exchange(op.mark, {}));
  op.stage = Stage::kDone;
  if (op.members > 1 || op.across_hosts) across_hosts_.ReturnLease(op);
  return true;
}

// The announcement that the backend below would have made goes into the cell of this member.
Status CudaBackend::PostDescriptor(CudaOp& op, const BufferDescriptor& own) {
  op.stage = Stage::kPosted;
  if (op.members == 1) return Status::Ok();
  CudaCell& cell = op.cell(op.self);
  std::copy(own.words.begin(), own.words.end(), cell.words);
  cell.payload_bytes = static_cast<uint32_t>(own.payload.size());
  if (!own.payload.empty()) {
    const Result<Location> copy = leases_.Stage(&op.lease, own.payload.data(), own.payload.size());
    if (!copy.ok()) return copy.status();
    cell.payload = *copy;
  }
  cell.posted.store(1, std::memory_order_release);
  if (options_.wake_peers) options_.wake_peers();
  return Status::Ok();
}

Result<bool> CudaBackend::StartPosted(CudaOp& op) {
  std::vector<BufferDescriptor> descriptors(op.members);
  std::vector<Extent> extents;
  for (uint32_t m = 0; m < op.members && op.members > 1; ++m) {
    if (op.controls[m] == nullptr) continue;
    const CudaCell& cell = op.cell(m);
    std::copy(std::begin(cell.words), std::end(cell.words), descriptors[m].words.begin());
    if (cell.payload_bytes == 0 || m == op.self) continue;
    const Result<std::byte*> payload =
        options_.peer_memory->Resolve(cell.payload, cell.payload_bytes);
    if (!payload.ok()) return payload.status();
    descriptors[m].payload = {*payload, cell.payload_bytes};
  }
  for (size_t m = 0; m < op.rows.size(); ++m) extents.push_back({op.rows[m], op.splits[m]});
  if (!op.across_hosts) return op.staged->Start({descriptors, extents, op.joined});
  const HostsRequest& asked = op.request;
  const std::string name = Format("{} #{}/{}", asked.name, asked.part + 1, asked.part_count);
  const InterHostRequest inter_host{.domain = asked.domain + kStagedDomains,
                                    .name = name,
                                    .detail = asked.detail,
                                    .participants = op.agreement->agreed().participants};
  return op.staged->Start({descriptors, extents, op.joined, &inter_host});
}

// Member 0 warns for all; a member that is the reason warns of what it lacks.
void CudaBackend::WarnOfStaging(const CudaOp& op) {
  const Group& group = *op.call.group;
  const bool usable = parts_.nccl.ok();
  const std::string here = usable ? options_.without_nccl : parts_.nccl.status().message();
  std::string sentence = Format("rank {}: {}", options_.rank, here);
  if (group.index == 0) {
    sentence = Format(
        "CUDA tensors of {} travel through the memory of the host, the slow way, because {}{}{}",
        group.id == 0 ? "the world" : SetName(group), op.choice.why,
        here.empty() ? "" : (usable ? "; " : "; here, "), here);
  } else if (op.choice.why != NoNcclReason(options_.rank)) {
    return;
  }
  if (options_.warn && warnings_.insert(sentence).second) options_.warn(sentence);
}

// ---- for waiting threads

bool CudaBackend::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  const CudaOp& op = OpOf(state);
  const std::vector<uint32_t>& local = call.group->local;
  const auto found = std::ranges::lower_bound(local, peer);
  if (found == local.end() || *found != peer) return false;
  const auto member = static_cast<uint32_t>(found - local.begin());
  if (member == op.self) return false;
  if (op.stage == Stage::kAgreeing) return op.agreement->Needs(peer);
  if (op.stage == Stage::kLane) return op.lane->Awaits(op, member);
  if (op.stage == Stage::kHost) return op.staged->Needs(peer);
  const bool posts = op.stage == Stage::kCopied || op.stage == Stage::kPosted;
  return posts && op.controls[member] != nullptr &&
         op.cell(member).posted.load(std::memory_order_acquire) == 0;
}

AwaitedRanks CudaBackend::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  const CudaOp& op = OpOf(state);
  if (op.stage == Stage::kHost) return op.staged->AwaitedBy();
  if (op.stage == Stage::kAgreeing) return op.agreement->AwaitedBy();
  AwaitedRanks awaited{{}, true};
  for (uint32_t m = 0; m < op.members; ++m) {
    if (Needs(call, state, call.group->local[m]))
      awaited.ranks.push_back(call.group->ranks[call.group->local_to_group[m]]);
  }
  return awaited;
}

std::string CudaBackend::Awaits(const CollectiveCall& call, const OpState* state) const {
  const CudaOp& op = OpOf(state);
  if (op.stage == Stage::kHost) return op.staged->Awaits();
  if (op.stage == Stage::kAgreeing) return op.agreement->Awaits();
  return AwaitedParts(AwaitedBy(call, state).ranks);
}

void CudaBackend::Withdraw(const CollectiveCall&, const OpState* state, std::string why) {
  const CudaOp& op = OpOf(state);
  if (op.stage == Stage::kAgreeing) return op.agreement->Withdraw(std::move(why));
  if (op.across_hosts && op.stage == Stage::kHost) op.staged->Withdraw(std::move(why));
}

// ---- ends

void CudaBackend::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (state == nullptr) return;
  CudaOp& op = OpOf(state.get());
  across_hosts_.Forget(op);
  if (op.agreement != nullptr) op.agreement->Abandon(peers_may_work);
  if (op.lane != nullptr) op.lane->Forget(op);
  if (op.staged != nullptr) op.staged->Abandon(peers_may_work);
  if (op.mark.handle != 0) op.device->DropMark(op.mark);
  if (op.lease.control != nullptr && !peers_may_work) leases_.Reclaim(&op.lease);
  // A kernel of NCCL may write the result until the communicators are gone.
  CollectiveResult* result = op.call.result;
  if (peers_may_work && result != nullptr && result->made_output != nullptr)
    left_behind_.push_back(std::exchange(result->made_output, nullptr));
}

// An abort frees memory, so it waits until the device is idle, and thus for the kernels of every
// communicator of this process: aborting one after the other, none would end.
void CudaBackend::Abort(const Status& why) {
  MutexLock lock(mutex_);
  if (!aborted_.ok()) return;
  aborted_ = why;
  if (lanes_.empty()) return;
  const Watchdog watchdog(options_.abort_limit, [this, &why] {
    options_.end_process(Format(
        "rank {}: NCCL has not come back from ncclCommAbort for {} s, after: {}", options_.rank,
        std::chrono::duration_cast<std::chrono::seconds>(options_.abort_limit).count(),
        why.message()));
  });
  std::vector<std::thread> others;
  for (auto& [key, lane] : lanes_) {
    if (lane == lanes_.begin()->second) continue;
    others.emplace_back([&why, one = lane.get()] { one->Abort(why); });
  }
  lanes_.begin()->second->Abort(why);
  for (std::thread& other : others) other.join();
}

void CudaBackend::Watch() {
  Status error;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    for (auto& [key, lane] : lanes_) {
      if (error.ok()) error = lane->Watch();
    }
  }
  if (error.ok()) return;
  if (options_.warn) options_.warn(error.message());
  Abort(error);
}

bool CudaBackend::UsesNccl() const {
  MutexLock lock(mutex_);
  return !lanes_.empty();
}

void CudaBackend::Leave() {
  std::vector<NcclLane*> open;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    for (auto& [key, lane] : lanes_) open.push_back(lane.get());
  }
  const TimePoint deadline = options_.clock->Now() + options_.drain_limit;
  while (!open.empty()) {
    const TimePoint now = options_.clock->Now();
    std::erase_if(open, [now](NcclLane* lane) {
      const Result<bool> closed = lane->AdvanceClose(now);
      return !closed.ok() || *closed;
    });
    if (now >= deadline) break;
    if (!open.empty()) std::this_thread::sleep_for(kLookAgain);
  }
  Abort(Aborted("this rank has left the world"));
}

}  // namespace hvd
