#include "runtime/backends/hosts/batch_executor.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/backends/hosts/leader_sum.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/backends/shm/gather_plan.h"
#include "runtime/base/align.h"
#include "runtime/device/adasum.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

size_t SumBytes(const CollectiveCall& call) { return call.count * SizeOf(InterHostType(call)); }

}  // namespace

Status BatchExecutor::Run(std::span<const std::shared_ptr<LeaderOp>> ops) {
  const auto self = std::find(msg_.leaders.begin(), msg_.leaders.end(), rank_);
  if (self == msg_.leaders.end() || ops.size() != msg_.entries.size()) {
    return Internal("the coordinator gave out work that is not for this rank");
  }
  group_ = {msg_.leaders, static_cast<uint32_t>(self - msg_.leaders.begin())};
  const std::vector<LeaderItem> items = ItemsOf(msg_, ops);
  for (size_t first = 0; first < items.size();) {
    size_t end = first + 1;
    while (end < items.size() && TravelTogether(items[first].part->call, items[end].part->call)) {
      ++end;
    }
    const Items together(items.data() + first, end - first);
    const CollectiveCall& call = items[first].part->call;
    Status done = IsSum(call) ? Allreduce(together) : RunOne(items[first]);
    if (!done.ok()) return done;
    first = end;
  }
  Note(items, TraceActivity::kNone, 0);
  return Status::Ok();
}

Status BatchExecutor::RunOne(const LeaderItem& item) {
  switch (item.part->call.collective) {
    case Collective::kAllreduce: return Adasum(item);
    case Collective::kAllgather: return Allgather(item);
    case Collective::kBroadcast: return Broadcast(item);
    case Collective::kAlltoall: return Alltoall(item);
    case Collective::kReducescatter: return Reducescatter(item);
    default: return Internal("a collective that moves no data came to the leaders");
  }
}

InterHostCall BatchExecutor::NextCall() {
  return {.group = group_,
          .tag = TagOf(msg_.number, calls_++),
          .idle_limit = around_.idle_limit,
          .cut = msg_.cut};
}

void BatchExecutor::Note(Items items, TraceActivity activity, size_t bytes) {
  NoteActivity(items, {.bytes = bytes, .activity = activity});
}

Status BatchExecutor::Exchange(Items items, Collective collective, size_t bytes,
                               const std::function<Status(const InterHostCall&)>& run) {
  NoteActivity(items, ExchangeNote(around_.comm.name(), items, collective, bytes));
  TraceAlgorithm algorithm = TraceAlgorithm::kUnknown;
  InterHostCall call = NextCall();
  call.algorithm = &algorithm;
  Status done = run(call);
  NoteAlgorithm(items, algorithm);
  return done;
}

std::byte* BatchExecutor::Scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

// The leader works on the chunks that no member has claimed, and waits only for members in the
// middle of one.
Status BatchExecutor::FinishLocalSum(LeaderTensor& part) {
  while (!part.local_sum.Help()) {
    if (around_.given_up()) return Aborted("the world broke while a sum was made");
    ::sched_yield();
  }
  return Status::Ok();
}

// ---- sums

Status BatchExecutor::Allreduce(Items items) {
  LeaderSum sum(items);
  if (!items[0].part->straight) Note(items, TraceActivity::kHostReduce, sum.bytes());
  while (!sum.Help()) {
    if (around_.given_up()) return Aborted("the world broke while a sum was made");
    ::sched_yield();
  }
  if (sum.count() == 0) return Status::Ok();
  const auto room = [this](size_t bytes) { return Scratch(bytes); };
  if (!msg_.sums.empty()) {
    sum.Pack(room, /*by_part=*/false);
    NoteActivity(items,
                 ExchangeNote(around_.comm.name(), items, Collective::kAllreduce, sum.bytes()));
    NoteAlgorithm(items, TraceAlgorithm::kAnnouncement);
    HVD_RETURN_IF_ERROR(sum.AddOffered(msg_.sums, group_.index));
    sum.HandOut();
    return Status::Ok();
  }
  SumCopies* copies = sum.Pack(room, around_.comm.CopiesByPart());
  Status combined = Exchange(items, Collective::kAllreduce, sum.bytes(), [&](InterHostCall with) {
    with.copies = copies;
    return around_.comm.Allreduce(with, sum.spec(), sum.input(), sum.output(), sum.count());
  });
  if (combined.ok()) sum.HandOut();
  return combined;
}

// Every leader receives every input and combines the same tree over all ranks: the dot products
// need whole vectors.
Status BatchExecutor::Adasum(const LeaderItem& item) {
  LeaderTensor& part = *item.part;
  const CollectiveCall& call = part.call;
  if (call.count == 0) return Status::Ok();
  const std::vector<int64_t>& members = item.entry->extents[item.number];
  if (members.size() != leaders()) return Internal("an Adasum without its numbers of ranks");
  std::vector<size_t> bytes(leaders());
  size_t before = 0, total = 0;
  for (uint32_t h = 0; h < leaders(); ++h) {
    bytes[h] = static_cast<size_t>(members[h]) * call.bytes();
    if (h < group_.index) before += bytes[h];
    total += bytes[h];
  }
  const Items one(&item, 1);
  Note(one, TraceActivity::kCopyIn, bytes[group_.index]);
  std::byte* all = Scratch(total);
  for (size_t m = 0; m < part.inputs.size(); ++m) {
    CopyRange(all + before + m * call.bytes(), part.inputs[m], call.bytes());
  }
  Status gathered = Exchange(one, Collective::kAllgather, total, [&](const InterHostCall& with) {
    return around_.comm.Allgatherv(with, all + before, bytes, all);
  });
  if (!gathered.ok()) return gathered;
  Note(one, TraceActivity::kHostReduce, total);
  std::vector<const void*> inputs;
  for (size_t at = 0; at < total; at += call.bytes()) inputs.push_back(all + at);
  std::vector<double> products(DotProductCount(inputs.size()), 0.0);
  AddDotProducts(call.dtype, inputs, 0, call.count, products);
  const std::vector<double> weights =
      ScaledAdasumWeights(call, products, static_cast<uint32_t>(inputs.size()));
  void* out = part.memory;
  WeightedSumRange(call.dtype, inputs, weights, {&out, 1}, 0, call.count);
  return Status::Ok();
}

// Like the first half of an allreduce, with the members' rows as slices.
Status BatchExecutor::Reducescatter(const LeaderItem& item) {
  LeaderTensor& part = *item.part;
  const CollectiveCall& call = part.call;
  const Items one(&item, 1);
  Note(one, TraceActivity::kHostReduce, SumBytes(call));
  HVD_RETURN_IF_ERROR(FinishLocalSum(part));
  const size_t element = SizeOf(InterHostType(call));
  const auto size = static_cast<uint32_t>(item.op->set_size);
  std::vector<size_t> bytes(leaders(), 0);
  struct Run {
    size_t first, bytes;
  };
  std::vector<Run> runs;
  for (uint32_t h = 0; h < leaders(); ++h) {
    for (uint32_t member : item.op->hosts->parts[h].members) {
      const RowRange rows = RowsOf(member, call.rows, size);
      const size_t row_bytes = call.row_count * element;
      runs.push_back({static_cast<size_t>(rows.first) * row_bytes,
                      static_cast<size_t>(rows.count) * row_bytes});
      bytes[h] += runs.back().bytes;
    }
  }
  const size_t own = bytes[group_.index], total = SumBytes(call);
  Note(one, TraceActivity::kCopyIn, total);
  std::byte* ordered = Scratch(total);
  std::vector<size_t> counts;
  for (size_t of_host : bytes) counts.push_back(of_host / element);
  size_t at = 0;
  for (const Run& run : runs) {
    if (run.bytes != 0) CopyRange(ordered + at, part.memory + run.first, run.bytes);
    at += run.bytes;
  }
  const ReduceSpec plain{InterHostType(call), ArithmeticOf(call.op)};
  Status combined =
      Exchange(one, Collective::kReducescatter, total, [&](const InterHostCall& with) {
        return around_.comm.Reducescatterv(with, plain, ordered, counts, part.memory);
      });
  if (!combined.ok() || own == 0) return combined;
  const void* sum = part.memory;
  FinishSum(call, DivisorFor(call, item), {&sum, 1}, part.memory, own / element);
  return Status::Ok();
}

// ---- copies

Status BatchExecutor::Broadcast(const LeaderItem& item) {
  LeaderTensor& part = *item.part;
  const CollectiveCall& call = part.call;
  if (call.bytes() == 0) return Status::Ok();
  uint32_t root = 0;
  for (uint32_t h = 0; h < leaders(); ++h) {
    const std::vector<uint32_t>& members = item.op->hosts->parts[h].members;
    const auto found = std::find(members.begin(), members.end(), call.root);
    if (found == members.end()) continue;
    root = h;
    if (h != group_.index) continue;
    CopyRange(part.memory, part.inputs[static_cast<size_t>(found - members.begin())], call.bytes());
  }
  return Exchange(Items(&item, 1), Collective::kBroadcast, call.bytes(),
                  [&](const InterHostCall& with) {
                    return around_.comm.Broadcast(with, root, part.memory, call.bytes());
                  });
}

// Registered memory for a table of numbers, filled by the call in board order, followed by the
// data.
Status BatchExecutor::MakeResult(LeaderTensor& part, size_t table_words, size_t data_bytes,
                                 std::byte** data) {
  const size_t table_bytes = RoundUp(table_words * sizeof(int64_t), kCacheLine);
  Status why;
  part.memory = static_cast<std::byte*>(
      around_.heap.Allocate(table_bytes + data_bytes, /*zeroed=*/false, &why, Until::kWorldEnds));
  if (part.memory == nullptr) return why;
  part.result_status->table_bytes = table_bytes;
  part.result_status->result_bytes = table_bytes + data_bytes;
  *data = part.memory + table_bytes;
  return Status::Ok();
}

// The result is in order of hosts, and of members within a host.
Status BatchExecutor::Allgather(const LeaderItem& item) {
  LeaderTensor& part = *item.part;
  const std::vector<int64_t>& rows = item.entry->extents[item.number];
  std::vector<size_t> bytes(leaders(), 0);
  size_t before = 0;
  for (uint32_t h = 0; h < leaders(); ++h) {
    for (uint32_t member : item.op->hosts->parts[h].members) {
      bytes[h] += static_cast<size_t>(rows[member]) * part.call.row_bytes();
    }
    if (h < group_.index) before += bytes[h];
  }
  const size_t total = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
  std::byte* data = nullptr;
  HVD_RETURN_IF_ERROR(MakeResult(part, rows.size(), total, &data));
  std::memcpy(part.memory, rows.data(), rows.size() * sizeof(int64_t));
  if (total == 0) return Status::Ok();
  const Items one(&item, 1);
  Note(one, TraceActivity::kCopyIn, bytes[group_.index]);
  std::byte* at = data + before;
  for (size_t m = 0; m < part.inputs.size(); ++m) {
    const size_t own = static_cast<size_t>(part.extents[m][0]) * part.call.row_bytes();
    if (own != 0) CopyRange(at, part.inputs[m], own);
    at += own;
  }
  return Exchange(one, Collective::kAllgather, total, [&](const InterHostCall& with) {
    return around_.comm.Allgatherv(with, data + before, bytes, data);
  });
}

// For each host, for each receiver there: what the members here send to it. So received data is
// ordered by the sender's host, then by receiver here, then by sender.
Status BatchExecutor::Alltoall(const LeaderItem& item) {
  LeaderTensor& part = *item.part;
  const size_t row_bytes = part.call.row_bytes(), size = item.op->set_size;
  const std::vector<int64_t>& receive_rows = item.entry->extents[item.number];
  const auto& hosts = item.op->hosts->parts;
  const size_t here = hosts[group_.index].members.size();
  std::vector<size_t> send(leaders(), 0), receive(leaders(), 0);
  for (uint32_t h = 0; h < leaders(); ++h) {
    for (uint32_t member : hosts[h].members) {
      for (size_t i = 0; i < here; ++i) {
        send[h] += static_cast<size_t>(part.extents[i][member]) * row_bytes;
        receive[h] += static_cast<size_t>(receive_rows[i * size + member]) * row_bytes;
      }
    }
  }
  std::byte* data = nullptr;
  const size_t incoming = std::accumulate(receive.begin(), receive.end(), size_t{0});
  HVD_RETURN_IF_ERROR(MakeResult(part, receive_rows.size(), incoming, &data));
  std::memcpy(part.memory, receive_rows.data(), receive_rows.size() * sizeof(int64_t));
  std::vector<std::vector<size_t>> first(here, std::vector<size_t>(size + 1, 0));
  for (size_t i = 0; i < here; ++i) {
    for (size_t j = 0; j < size; ++j) {
      first[i][j + 1] = first[i][j] + static_cast<size_t>(part.extents[i][j]) * row_bytes;
    }
  }
  const Items one(&item, 1);
  const size_t outgoing = std::accumulate(send.begin(), send.end(), size_t{0});
  Note(one, TraceActivity::kCopyIn, outgoing);
  std::byte* packed = Scratch(outgoing);
  std::byte* at = packed;
  for (uint32_t h = 0; h < leaders(); ++h) {
    for (uint32_t member : hosts[h].members) {
      for (size_t i = 0; i < here; ++i) {
        const size_t bytes = first[i][member + 1] - first[i][member];
        if (bytes != 0) CopyRange(at, part.inputs[i] + first[i][member], bytes);
        at += bytes;
      }
    }
  }
  return Exchange(one, Collective::kAlltoall, outgoing + incoming, [&](const InterHostCall& with) {
    return around_.comm.Alltoallv(with, packed, send, data, receive);
  });
}

}  // namespace hvd
