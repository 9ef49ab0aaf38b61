// TakeoverRecord: what a successor needs after its driver was killed, beyond the agents' snapshots
// (HostSnapshot): where they wait, the final plan, and decisions about the end. AdoptionEvents
// returns the events that bring the new driver's job to the same state. Pure.
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
  uint8_t has_rank = 0;  // elastic jobs: its agent waits for the next hvdrun
  std::vector<std::string> addresses;
  uint32_t free_port = 0;  // held by its agent
};

struct TakeoverRecord {
  int32_t pid = 0;       // of the driver
  std::string key;       // secret: authenticates the successor to the agents
  int64_t begun_ns = 0;  // when the job began, on this machine's steady clock
  std::vector<std::string> host_names;
  std::vector<Placement> ranks;
  uint8_t homogeneous = 1;
  std::vector<TakeoverHost> hosts;  // by host
  std::string master_address;
  uint32_t master_port = 0;
  // The signals that asked the job to end, in order.
  std::vector<int32_t> interrupts;
  // A failure of which the agents do not know; kind -1: none.
  int32_t failure_kind = -1, failure_code = 0;
  uint32_t failure_rank = 0, failure_peer = 0, failure_host = 0;
  std::string failure_reason;
  // All workers have ended, and hvdrun was about to print `report`.
  uint8_t is_over = 0;
  int32_t exit_code = 0;
  std::string report;
  // For elastic jobs (job_record.h), instead of the ranks and the failure.
  std::string job;
};

std::string EncodeTakeoverRecord(const TakeoverRecord& record);
std::optional<TakeoverRecord> DecodeTakeoverRecord(std::string_view bytes);

Plan PlanOf(const TakeoverRecord& record);
// Stores the failure in the record.
void SetFailure(TakeoverRecord& record, const JobFailure& failure);

// Not ok if a snapshot names ranks of other hosts: a sentence about "its agent".
Status CheckSnapshot(const Plan& plan, uint32_t host, const HostSnapshot& snapshot);

// The events in order. `snapshots`: by host; none for a host without a rank, or not reached.
std::vector<JobEvent> AdoptionEvents(const TakeoverRecord& record,
                                     const std::vector<std::optional<HostSnapshot>>& snapshots);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_TAKEOVER_RECORD_H_
