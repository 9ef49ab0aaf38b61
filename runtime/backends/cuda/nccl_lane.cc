#include "runtime/backends/cuda/nccl_lane.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/backends/cuda/refusal.h"
#include "runtime/backends/nccl/nccl_adasum.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kPackBelowBytes = size_t{64} << 10;
// Per batch: further operations go into the next one.
constexpr size_t kMostOps = 512;

using Action = CapturedBatches::Action;

// CudaCell::order: the number of the batch, the place in it, and whether it is the last one.
constexpr uint64_t OrderOf(uint64_t batch, uint64_t place, bool last) {
  return batch << 20 | place << 1 | (last ? 1 : 0);
}
constexpr uint64_t BatchIn(uint64_t order) { return order >> 20; }
constexpr size_t PlaceIn(uint64_t order) { return order >> 1 & 0x7ffff; }
constexpr bool IsLast(uint64_t order) { return (order & 1) != 0; }

NcclTensor TensorOf(const CollectiveCall& call) {
  return {AddressOf(call.input), AddressOf(call.output), call.count};
}

// Only batches whose memory NCCL finds completely in buffers of this lane are kept: for other
// memory a graph has NCCL send its address to the other members, and the program may free it.
CapturedBatches::Key KeyOf(const std::vector<CudaOp*>& ops, const NcclPlan& plan,
                           const NcclFusionBuffer& packing) {
  CapturedBatches::Key key;
  if (plan.calls.size() != 1 || !packing.BeginsAt(plan.calls[0].from)) return key;
  for (const CudaOp* op : ops) {
    if (op->call_numbers.empty()) return {};
    key.insert(key.end(), op->call_numbers.begin(), op->call_numbers.end());
  }
  return key;
}

// CU_STREAM_PER_THREAD.
bool DiffersByThread(const void* stream) { return reinterpret_cast<uintptr_t>(stream) == 2; }

// A late member blocks NCCL while it connects; the limit is that of a start.
Status GivenTooLate(const NcclMember& member, Duration limit) {
  return Aborted(Format(
      "{}: NCCL has been at work on its calls for {} s, and they have not come to the GPU: some of "
      "the {} members have stopped or cannot reach each other; look at the others, and at "
      "NCCL_SOCKET_IFNAME",
      NameOf(member), std::chrono::duration_cast<std::chrono::seconds>(limit).count(),
      member.size));
}

}  // namespace

NcclLane::NcclLane(CudaRoom& room, RankTurns& turns, std::unique_ptr<CudaDevice> device,
                   const NcclLibrary& library, KvStore& store, NcclCommOptions comm_options,
                   std::function<void()> wake_peers, NcclLaneOptions options, TimePoint now)
    : room_(room),
      turns_(turns),
      device_(std::move(device)),
      comm_(NcclComm::Begin(library, store, std::move(comm_options), now)),
      leads_(comm_->member().index == 0),
      wake_peers_(std::move(wake_peers)),
      options_(std::move(options)),
      packing_(*comm_, *device_, options_.packing_bytes, options_.registers),
      captured_(*device_) {}

NcclLane::~NcclLane() {
  captured_.Drop(Aborted("the lane has ended"));
  comm_.reset();  // aborted if not closed, so that the device finishes
  for (DeviceAddress address : scratches_) (void)device_->Free(address);
}

std::vector<const CudaOp*> NewestOfEachStream(std::span<CudaOp* const> ops) {
  std::vector<const CudaOp*> newest;
  for (const CudaOp* op : ops) {
    const auto same = std::ranges::find_if(newest, [op](const CudaOp* other) {
      return other->call.stream == op->call.stream && !DiffersByThread(op->call.stream);
    });
    if (same == newest.end()) {
      newest.push_back(op);
    } else if (op->mark_number > (*same)->mark_number) {
      *same = op;
    }
  }
  return newest;
}

bool GoTogether(const CollectiveCall& a, const CollectiveCall& b) {
  return a.collective == Collective::kAllreduce && b.collective == Collective::kAllreduce &&
         a.op == b.op && a.dtype == b.dtype && a.prescale == b.prescale &&
         a.postscale == b.postscale;
}

void NcclLane::Add(CudaOp& op) {
  op.stage = CudaOp::Stage::kLane;
  op.lane = this;
  waiting_.push_back(&op);
}

void NcclLane::AddBatch(std::vector<CudaOp*> ops) {
  for (CudaOp* op : ops) {
    op->stage = CudaOp::Stage::kLane;
    op->lane = this;
  }
  batches_[next_number_++] = {std::move(ops), true};
}

void NcclLane::Forget(CudaOp& op) {
  if (op.stage != CudaOp::Stage::kLane) return;
  std::erase(waiting_, &op);
  for (auto& [number, batch] : batches_) std::ranges::replace(batch.ops, &op, nullptr);
  (void)Fail(Aborted(NameOf(comm_->member()) + ": an operation was given up"));
}

// The world ends with the first error of a communicator.
Status NcclLane::Fail(Status why) {
  if (failure_.ok()) failure_ = OfThisRank(why);
  options_.abort_all(failure_);
  return failure_;
}

// NCCL waits for the end of every graph that contains calls of the communicator.
void NcclLane::Abort(const Status& why) {
  captured_.Drop(why);
  (void)comm_->Abort(why);
}

// The others may still close in order.
Status NcclLane::FailToClose(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  Abort(failure_);
  return failure_;
}

Status NcclLane::Watch() { return comm_->Watch(); }

bool NcclLane::Awaits(const CudaOp& op, uint32_t member) const {
  if (op.stage != CudaOp::Stage::kLane) return false;
  if (!ready_) return true;
  if (op.across_hosts) return false;
  return member == 0 && !leads_ && op.cell(0).order.load(std::memory_order_acquire) == 0;
}

// ---- the order

void NcclLane::MakeBatches() {
  size_t first = 0;
  while (first < waiting_.size()) {
    size_t end = first + 1;
    while (end < waiting_.size() && end - first < kMostOps &&
           GoTogether(waiting_[first]->call, waiting_[end]->call)) {
      ++end;
    }
    std::vector<uint64_t> turns(options_.turn_cells.size());
    if (!AcquireTurns(options_.turn_cells, turns)) break;  // another leader holds it
    Batch& batch = batches_[next_number_];
    batch.turn = turns[0];
    std::ranges::copy(turns, waiting_[first]->cell(0).turns());
    batch.ops.assign(waiting_.begin() + static_cast<ptrdiff_t>(first),
                     waiting_.begin() + static_cast<ptrdiff_t>(end));
    batch.complete = true;
    for (size_t i = 0; i < batch.ops.size(); ++i) {
      const bool last = i + 1 == batch.ops.size();
      batch.ops[i]->cell(0).order.store(OrderOf(next_number_, i, last), std::memory_order_release);
    }
    ++next_number_;
    first = end;
  }
  if (first > 0 && wake_peers_) wake_peers_();
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(first));
}

void NcclLane::ReadOrder() {
  std::erase_if(waiting_, [this](CudaOp* op) {
    CudaCell& cell = op->cell(0);
    const uint64_t order = cell.order.load(std::memory_order_acquire);
    if (order == 0) return false;
    Batch& batch = batches_[BatchIn(order)];
    const size_t place = PlaceIn(order);
    if (place == 0) batch.turn = cell.turns()[comm_->member().index];
    op->Release(0);
    if (batch.ops.size() <= place) batch.ops.resize(place + 1, nullptr);
    batch.ops[place] = op;
    batch.complete = batch.complete || IsLast(order);
    return true;
  });
}

Status NcclLane::Pump(TimePoint now) {
  if (!failure_.ok()) return failure_;
  if (idle()) return Status::Ok();
  const Result<bool> ready = MakeReady(now);
  if (!ready.ok()) return Fail(ready.status());
  if (!*ready) return Status::Ok();
  if (!waiting_.empty()) leads_ ? MakeBatches() : ReadOrder();
  while (!batches_.empty()) {
    const auto next = batches_.begin();
    const Batch& batch = next->second;
    if (next->first != next_given_ || !batch.IsKnown()) return Status::Ok();
    if (awaits_turn()) {  // which never arrives after an abort
      Status alive = Watch();
      return alive.ok() ? alive : Fail(std::move(alive));
    }
    if (!operation_) {
      begun_at_ = now;
      if (Status begun = BeginBatch(batch); !begun.ok()) return Fail(std::move(begun));
    }
    const Result<bool> given = GiveBatch();
    if (!given.ok()) return Fail(given.status());
    const bool late = now - begun_at_ >= options_.give_limit;
    if (!*given && late) return Fail(GivenTooLate(comm_->member(), options_.give_limit));
    if (!*given) return Status::Ok();
    if (Status finished = FinishBatch(batch); !finished.ok()) return Fail(std::move(finished));
    if (batch.turn != 0) turns_.Pass();
    batches_.erase(next);
    ++next_given_;
  }
  return Status::Ok();
}

bool NcclLane::Batch::IsKnown() const {
  return complete && std::ranges::find(ops, nullptr) == ops.end();
}

bool NcclLane::awaits_turn() const {
  if (batches_.empty() || batches_.begin()->first != next_given_) return false;
  const Batch& batch = batches_.begin()->second;
  return batch.IsKnown() && batch.turn != 0 && batch.turn != turns_.next();
}

Result<bool> NcclLane::MakeReady(TimePoint now) {
  if (ready_) return true;
  Result<bool> done = false;
  HVD_RETURN_IF_ERROR(device_->With([&](CuStream) {
    done = comm_->Advance(now);
    return done.status();
  }));
  ready_ = done.ok() && *done;
  return done;
}

// ---- one batch

Status NcclLane::BeginBatch(const Batch& batch) {
  HVD_RETURN_IF_ERROR(turns_.Follow(*device_));
  for (const CudaOp* op : NewestOfEachStream(batch.ops))
    HVD_RETURN_IF_ERROR(device_->BeginAfterMark(op->mark));
  Result<NcclPlan> plan = PlanOf(batch);
  if (!plan.ok()) return plan.status();
  action_ = captured_.Choose(KeyOf(batch.ops, *plan, packing_));
  operation_.emplace(std::move(*plan), *comm_, *device_);
  return Status::Ok();
}

// True once all of it is enqueued.
Result<bool> NcclLane::GiveBatch() {
  if (action_ == Action::kLaunch) {
    HVD_RETURN_IF_ERROR(captured_.Launch());
    return true;
  }
  if (action_ == Action::kCapture) {
    const Result<bool> begun = captured_.Begin();
    if (!begun.ok() || !*begun) return begun;
  }
  const Result<bool> given = operation_->Advance();
  if (given.ok() && *given && action_ == Action::kCapture)
    HVD_RETURN_IF_ERROR(captured_.LaunchCaptured());
  return given;
}

Result<bool> NcclLane::Ready(DeviceTicket ticket) {
  if (!failure_.ok()) return failure_;
  const Result<bool> settled = comm_->Settled();
  if (!settled.ok()) return Fail(settled.status());
  return device_->Ready(ticket);
}

Status NcclLane::FinishBatch(const Batch& batch) {
  operation_.reset();
  DeviceTicket given;
  if (options_.tickets) {
    const Result<DeviceTicket> ticket = device_->Record();
    if (!ticket.ok()) return ticket.status();
    given = *ticket;
  }
  for (const CudaOp* op : NewestOfEachStream(batch.ops))
    HVD_RETURN_IF_ERROR(device_->LetFollow(op->call.stream));
  for (CudaOp* op : batch.ops) {
    op->stage = CudaOp::Stage::kGiven;
    op->given = given;
  }
  return Status::Ok();
}

Result<NcclPlan> NcclLane::PlanOf(const Batch& batch) {
  CudaOp& op = *batch.ops.front();
  switch (op.call.collective) {
    case Collective::kAllreduce:
      return op.call.op == ReduceOp::kAdasum ? PlanAdasums(batch) : PlanReductions(batch);
    case Collective::kBroadcast:
      return PlanBroadcast(op.call.dtype, TensorOf(op.call), op.call.root);
    case Collective::kReducescatter: return PlanScatter(op);
    default: return PlanExchange(op);
  }
}

Result<NcclPlan> NcclLane::PlanReductions(const Batch& batch) {
  std::vector<NcclTensor> tensors;
  size_t small = 0;
  for (const CudaOp* op : batch.ops) {
    tensors.push_back(TensorOf(op->call));
    if (op->call.bytes() < kPackBelowBytes) ++small;
  }
  NcclPacking packing{.pack_below_bytes = 0};
  if (small > 1) {
    const Result<NcclBuffer> buffer = packing_.Get();
    if (!buffer.ok()) return buffer.status();
    packing = {*buffer, kPackBelowBytes};
  }
  const CudaOp& first = *batch.ops.front();
  return PlanAllreduce(ReductionOf(first.call), first.choice.abilities, tensors, packing);
}

Result<NcclPlan> NcclLane::PlanAdasums(const Batch& batch) {
  const CollectiveCall& first = batch.ops.front()->call;
  const NcclAdasum adasum{first.dtype, first.prescale * first.postscale, first.group->size(),
                          first.group->index};
  std::vector<NcclTensor> tensors;
  for (const CudaOp* op : batch.ops) tensors.push_back(TensorOf(op->call));
  const Result<NcclBuffer> buffer = Scratch(AdasumBytes(adasum, tensors));
  if (!buffer.ok()) return buffer.status();
  return PlanAdasum(adasum, tensors, *buffer);
}

Result<NcclPlan> NcclLane::PlanScatter(CudaOp& op) {
  const CollectiveCall& call = op.call;
  const uint32_t size = call.group->size(), self = call.group->index;
  std::vector<uint64_t> parts;
  for (uint32_t m = 0; m < size; ++m) {
    parts.push_back(static_cast<uint64_t>(RowsOf(m, call.rows, size).count) * call.row_count);
  }
  call.result->rows = RowsOf(self, call.rows, size).count;
  const size_t bytes = parts[self] * SizeOf(call.dtype);
  const Result<DeviceAddress> output = OutputOf(room_, *device_, op.ordinal, call, bytes);
  if (!output.ok()) return output.status();
  const NcclReduction reduction = ReductionOf(call);
  const Result<NcclReductionSteps> steps = StepsOfReduction(reduction, op.choice.abilities);
  if (!steps.ok()) return steps.status();
  // Scaled inputs need separate memory, and so do inputs that the output would overwrite.
  if (steps->before != 1.0) {
    const Result<NcclBuffer> buffer = Scratch(call.bytes());
    if (!buffer.ok()) return buffer.status();
    return PlanReducescatter(reduction, op.choice.abilities, AddressOf(call.input), *output, parts,
                             self, *buffer);
  }
  const Result<DeviceAddress> input = InputBeside(op, *output);
  if (!input.ok()) return input.status();
  return PlanReducescatter(reduction, op.choice.abilities, *input, *output, parts, self, {});
}

// Allgather and alltoall.
Result<NcclPlan> NcclLane::PlanExchange(CudaOp& op) {
  const CollectiveCall& call = op.call;
  const bool gathers = call.collective == Collective::kAllgather;
  std::vector<uint64_t> sent, received;
  for (int64_t rows : op.received) received.push_back(static_cast<uint64_t>(rows) * call.row_count);
  for (int64_t rows : op.sent) sent.push_back(static_cast<uint64_t>(rows) * call.row_count);
  const int64_t rows = std::accumulate(op.received.begin(), op.received.end(), int64_t{0});
  if (!gathers) call.result->received_splits = op.received;
  call.result->rows = rows;
  const size_t bytes = static_cast<size_t>(rows) * call.row_bytes();
  const Result<DeviceAddress> output = OutputOf(room_, *device_, op.ordinal, call, bytes);
  if (!output.ok()) return output.status();
  const Result<DeviceAddress> input = InputBeside(op, *output);
  if (!input.ok()) return input.status();
  return gathers ? PlanAllgather(call.dtype, *input, *output, received, call.group->index)
                 : PlanAlltoall(call.dtype, *input, *output, sent, received);
}

// The input, or a copy of it if the output is the same memory.
Result<DeviceAddress> NcclLane::InputBeside(const CudaOp& op, DeviceAddress output) {
  const DeviceAddress input = AddressOf(op.call.input);
  if (input != output || op.call.bytes() == 0) return input;
  const Result<NcclBuffer> copy = Scratch(op.call.bytes());
  if (!copy.ok()) return copy.status();
  const BatchItem item{input, copy->address, op.call.count};
  HVD_RETURN_IF_ERROR(device_->Move({op.call.dtype, op.call.dtype}, {&item, 1}));
  return copy->address;
}

// Reused from batch to batch, since the queue executes them in order. One that is too small stays
// until the end, since freeing it would make the processor wait; each is at least twice as large as
// the previous one.
Result<NcclBuffer> NcclLane::Scratch(size_t bytes) {
  if (bytes <= scratch_.bytes) return scratch_;
  bytes = std::max(bytes, 2 * scratch_.bytes);
  const Result<DeviceAddress> address = device_->Allocate(bytes);
  if (!address.ok()) return address.status();
  scratches_.push_back(*address);
  scratch_ = {*address, bytes};
  return scratch_;
}

// ---- the end

Result<bool> NcclLane::AdvanceClose(TimePoint now) {
  if (!failure_.ok()) return failure_;
  if (!ready_)
    return FailToClose(Aborted(NameOf(comm_->member()) + ": it is not ready and not needed"));
  if (!last_) {
    const Result<DeviceTicket> ticket = device_->Record();
    if (!ticket.ok()) return FailToClose(ticket.status());
    last_ = *ticket;
  }
  const Result<bool> idle = device_->Ready(*last_);
  if (!idle.ok()) return FailToClose(idle.status());
  if (!*idle) return false;
  Result<bool> done = false;
  Status status = device_->With([&](CuStream) {
    if (!std::exchange(closing_, true)) {
      captured_.Drop(Aborted("the communicator is closed"));
      HVD_RETURN_IF_ERROR(comm_->Close(now));
    }
    done = comm_->Advance(now);
    return done.status();
  });
  if (!status.ok()) return FailToClose(std::move(status));
  return done;
}

}  // namespace hvd
