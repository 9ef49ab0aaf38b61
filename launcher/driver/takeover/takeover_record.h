// TakeoverRecord: what a driver leaves to the one that takes over when it is killed, beyond what
// the agents know (HostSnapshot): where they wait, the final plan, and what it had decided about
// the end. AdoptionEvents makes the events with which the new driver's job comes to the same state.
// Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_TAKEOVER_RECORD_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_TAKEOVER_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/job/job.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

struct TakeoverHost {
  AgentPath there;
  uint8_t has_rank = 0;  // of an elastic job: its agent waits for the next hvdrun
  std::vector<std::string> addresses;
  uint32_t free_port = 0;  // that its agent holds
};

struct TakeoverRecord {
  int32_t pid = 0;       // of the driver
  std::string key;       // secret: shown to the agents
  int64_t begun_ns = 0;  // when the job began, by the steady clock of this machine
  std::vector<std::string> host_names;
  std::vector<Placement> ranks;
  uint8_t homogeneous = 1;
  std::vector<TakeoverHost> hosts;  // by host
  std::string master_address;
  uint32_t master_port = 0;
  // The job was asked to end: the signals, as they came.
  std::vector<int32_t> interrupts;
  // It ends for a reason that the agents do not know; kind -1: it does not.
  int32_t failure_kind = -1, failure_code = 0;
  uint32_t failure_rank = 0, failure_peer = 0, failure_host = 0;
  std::string failure_reason;
  // All workers have ended, and that is what hvdrun was about to say.
  uint8_t is_over = 0;
  int32_t exit_code = 0;
  std::string report;
  // Of an elastic job (job_record.h), instead of the ranks and the failure.
  std::string job;
};

std::string EncodeTakeoverRecord(const TakeoverRecord& record);
std::optional<TakeoverRecord> DecodeTakeoverRecord(std::string_view bytes);

Plan PlanOf(const TakeoverRecord& record);
// What the record says of a failure.
void SetFailure(TakeoverRecord& record, const JobFailure& failure);

// A snapshot that speaks of ranks of other hosts is not ok: a sentence about "its agent".
Status CheckSnapshot(const Plan& plan, uint32_t host, const HostSnapshot& snapshot);

// In this order. `snapshots`: by host; none of a host without a rank, or that was not reached.
std::vector<JobEvent> AdoptionEvents(const TakeoverRecord& record,
                                     const std::vector<std::optional<HostSnapshot>>& snapshots);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_TAKEOVER_RECORD_H_
