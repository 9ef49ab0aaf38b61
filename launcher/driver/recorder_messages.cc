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

Status RecorderMessages::Take(uint32_t host, const CountsReply& reply) {
  for (const WorkerCounts& counts : reply.workers) {
    if (Status own = CheckWorker(counts.worker, host, parts_.state.plan.ranks); !own.ok())
      return own;
  }
  return parts_.live.Take(host, reply);
}

Status RecorderMessages::Take(uint32_t host, const RingReply& reply) {
  if (host >= parts_.state.clocks.size()) return Status::Ok();
  if (reply.number != kFailureDump) {
    parts_.live.Take(host, reply);
  } else if (parts_.failure_dump) {
    const HostClock& clock = parts_.state.clocks[host];
    const TraceRecords records{reply.rank, reply.world_rank, reply.generation, 0, reply.records};
    const TraceBegun begun{reply.rank, reply.world_rank, reply.generation,
                           FirstStampIn(reply.records)};
    parts_.failure_dump->Take(host, parts_.NameOf(host), begun, clock);
    parts_.failure_dump->Take(host, parts_.NameOf(host), records, clock);
  }
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const StacksReply& reply) {
  for (const WorkerStacks& stacks : reply.workers) {
    if (Status own = CheckWorker(stacks.worker, host, parts_.state.plan.ranks); !own.ok())
      return own;
  }
  parts_.live.Take(host, reply);
  return Status::Ok();
}

Status RecorderMessages::Take(uint32_t host, const RingsOver& over) {
  parts_.live.Take(host, over);
  return Status::Ok();
}

}  // namespace hvd
