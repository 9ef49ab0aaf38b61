// The plan of a job whose hosts are known by name, and how the reports of their agents make it
// final: two names of one host are merged, and a host without a number of slots has those that its
// agent reports. Pure.
//
//   hosts as named --DraftPlan--> the hosts to open --their agents' facts--> FinalPlan
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_FINAL_PLAN_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_FINAL_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "launcher/job/host_records/command_trouble.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// The facts that an agent reports about its host.
struct AgentFacts {
  std::string identity;  // equal: the same host (host_identity.h); empty: not known
  uint32_t slots = 0;    // of a host without a number; 0: not reported
  CommandFacts command;  // command.program is empty: not asked for
  uint32_t cpus = 0;     // of the host; 0: not reported
};

struct PlanDraft {
  // The hosts to open, from the first named on; the job cannot need any other.
  std::vector<HostSlots> hosts;
  Plan plan;  // of these; final unless their agents report otherwise
};

// An error when the known slots of the hosts cannot be enough.
Result<PlanDraft> DraftPlan(const std::vector<HostSlots>& hosts, uint32_t num_proc);

struct FinalPlan {
  Plan plan;                       // its hosts are those of the draft, under the same numbers
  std::vector<uint32_t> no_rank;   // hosts that the job does not need
  std::vector<std::string> notes;  // sentences for the user about names of one host
};

// `facts` are by host. Hosts with the same identity are merged into the first of them, unless all
// are simulated on this machine. An error when there are too few slots.
Result<FinalPlan> MakeFinalPlan(const std::vector<HostSlots>& hosts,
                                const std::vector<AgentFacts>& facts, uint32_t num_proc);

// "4 ranks on 2 hosts: a, b"
std::string PlanText(const Plan& plan);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_FINAL_PLAN_H_
