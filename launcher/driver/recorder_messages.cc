#include "launcher/driver/recorder_messages.h"

#include "launcher/wire/message_rights.h"

namespace hvd {

Status RecorderMessages::Take(uint32_t host, const TraceBegun& begun) {
  if (parts_.timeline && host < parts_.state.clocks.size())
    parts_.timeline->Take(host, parts_.NameOf(host), begun, parts_.state.clocks[host]);
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const TraceRecords& records) {
  if (parts_.timeline && host < parts_.state.clocks.size())
    parts_.timeline->Take(host, parts_.NameOf(host), records, parts_.state.clocks[host]);
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const CountsReply& told) {
  for (const WorkerCounts& counts : told.workers) {
    if (Status own = CheckWorker(counts.worker, host, parts_.state.plan.ranks); !own.ok())
      return own;
  }
  return parts_.live.Take(host, told);
}

Status RecorderMessages::Take(uint32_t host, const RingReply& told) {
  if (host >= parts_.state.clocks.size()) return Status::Ok();
  if (told.number != kFailureDump) {
    parts_.live.Take(host, told);
  } else if (parts_.failure_dump) {
    const HostClock& clock = parts_.state.clocks[host];
    const TraceRecords records{told.rank, told.world_rank, told.generation, 0, told.records};
    const TraceBegun begun{told.rank, told.world_rank, told.generation, FirstStampIn(told.records)};
    parts_.failure_dump->Take(host, parts_.NameOf(host), begun, clock);
    parts_.failure_dump->Take(host, parts_.NameOf(host), records, clock);
  }
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const StacksReply& told) {
  for (const WorkerStacks& stacks : told.workers) {
    if (Status own = CheckWorker(stacks.worker, host, parts_.state.plan.ranks); !own.ok())
      return own;
  }
  parts_.live.Take(host, told);
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const RingsOver& over) {
  parts_.live.Take(host, over);
  return Status::Ok();
}

}  // namespace hvd
