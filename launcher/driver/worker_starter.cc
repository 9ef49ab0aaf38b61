#include "launcher/driver/worker_starter.h"

#include <cerrno>
#include <string>

#include "configs/message_text.h"
#include "discovery/this_machine.h"
#include "launcher/driver/start_job.h"

namespace hvd {

std::map<uint32_t, std::vector<Member>> ByHost(const std::vector<Member>& members) {
  std::map<uint32_t, std::vector<Member>> by_host;
  for (const Member& member : members) by_host[member.place.host].push_back(member);
  return by_host;
}

void WorkerStarter::Start(const StartMembers& start) {
  screen_.HostsReady();
  state_.policy().finds_hosts ? StartMembersOf(start) : StartAll();
}

// Before its workers start. False: they cannot meet, which ends the job.
bool WorkerStarter::BeginStockWorld(const std::vector<Placement>& places) {
  if (stock_ == nullptr) return true;
  if (const Status begun = stock_->Begin(places); !begun.ok()) {
    events_.Push(WorkerNotStarted{0, EADDRINUSE, begun.message()});
    return false;
  }
  if (const std::string notice = stock_->PopNotice(); !notice.empty()) screen_.Print(notice);
  return true;
}

// ---- all workers, where the plan says

void WorkerStarter::StartAll() {
  const bool several_machines = hosts_.SeveralMachines(state_.plan);
  if (several_machines) network_.connectivity().Finish(hosts_[0].free_port);
  network_.FormTree();
  if (several_machines)
    log_.Info("the hosts reach each other: " + network_.connectivity().AddressesText());
  log_.Info("starting " + Printable(CommandText(options_.command), kMaxShownPath));
  SendParts();
  stdin_.Start(state_.plan, hosts_);
}

// Each agent gets its part of the job.
void WorkerStarter::SendParts() {
  if (!BeginStockWorld(state_.plan.ranks)) return;
  const StartJob common = CommonStart(options_, state_.plan, hosts_.master());
  std::vector<std::vector<Placement>> slots = state_.plan.ByHost();
  for (uint32_t host : network_.tree().hosts()) {
    StartJob start =
        StartJobOn(host, std::move(slots[host]), state_.plan, options_, hosts_, common);
    if (stock_ != nullptr) start.meeting.rendezvous = stock_->AddressFor(host);
    network_.tree().SetPlace(host, start);
    network_.AwaitSuccessorAt(host);
    network_.agents().Send(host, start);
  }
}

// ---- workers on hosts that were found

void WorkerStarter::StartMembersOf(const StartMembers& start) {
  log_.Info("starting " + Printable(CommandText(options_.command), kMaxShownPath));
  std::vector<Placement> places;
  for (const Member& member : start.members) {
    if (member.place.rank == 0) SetMasterAt(member.place.host);
    screen_.UseRank(member.place.rank, state_.plan.hosts[member.place.host],
                    member.place.local_rank);
    places.push_back(member.place);
  }
  if (!BeginStockWorld(places)) return;
  const Plan plan = state_.GenerationPlan();
  const StartJob common = CommonStart(options_, plan, hosts_.master());
  for (const auto& [host, members] : ByHost(start.members))
    StartOn(host, members, start, plan, common);
}

void WorkerStarter::UseRunning(std::set<uint32_t> hosts) {
  has_part_ = std::move(hosts);
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    const RankRecord& rank = state_.ranks[worker];
    const Placement& place = state_.plan.ranks[worker];
    if (rank.alive()) screen_.UseRank(rank.rank, state_.plan.hosts[place.host], place.local_rank);
  }
}

// The address that scripts of torch.distributed get: rank 0 listens there.
void WorkerStarter::SetMasterAt(uint32_t host) {
  std::string address;
  if (hosts_.any_remote()) address = hosts_[host].remote ? hosts_[host].target : HostName();
  hosts_.set_master({std::move(address), hosts_[host].free_port});
}

// The first workers of a host come with its part of the job.
void WorkerStarter::StartOn(uint32_t host, const std::vector<Member>& members,
                            const StartMembers& start, const Plan& plan, const StartJob& common) {
  std::vector<Placement> places;
  std::vector<uint32_t> workers;
  for (const Member& member : members) {
    places.push_back(member.place);
    workers.push_back(member.worker);
  }
  if (!has_part_.insert(host).second) {
    AddWorkers more{workers, places, start.size, static_cast<uint8_t>(start.homogeneous)};
    more.master_address = common.meeting.master_address;
    more.master_port = common.meeting.master_port;
    more.restarts = start.restarts;
    if (stock_ != nullptr) more.rendezvous = stock_->AddressFor(host);
    return network_.agents().Send(host, more);
  }
  StartJob first = StartJobOn(host, std::move(places), plan, options_, hosts_, common);
  first.ranks.size = start.size;
  first.ranks.homogeneous = start.homogeneous ? 1 : 0;
  first.ranks.workers = std::move(workers);
  first.meeting.interfaces = options_.interfaces;
  first.restarts = {start.restarts, options_.policy.failures.most};
  if (stock_ != nullptr) first.meeting.rendezvous = stock_->AddressFor(host);
  network_.agents().Send(host, first);
}

}  // namespace hvd
