#include "launcher/job/state/job_state.h"

#include <cassert>
#include <utility>

namespace hvd {

uint32_t JobState::AddWorker(uint32_t host, uint32_t seat) {
  const auto worker = static_cast<uint32_t>(ranks.size());
  kinds.Add(ranks.emplace_back());
  plan.ranks.push_back({worker, host, seat, 0, 0, 0});
  elastic.TakeSeat(host, seat);
  return worker;
}

void JobState::Move(uint32_t worker, WorkerState to) {
  RankRecord& rank = ranks[worker];
  assert(MayFollow(rank.state, to));
  const auto change = [&rank, to](size_t& count, auto counts) {
    count += counts(to);
    count -= counts(rank.state);
  };
  change(counts.begun, [](WorkerState state) { return state != WorkerState::kStarting; });
  change(counts.ended, [](WorkerState state) { return state == WorkerState::kEnded; });
  change(counts.waiting, [](WorkerState state) { return state == WorkerState::kInInit; });
  Change(worker, [to](RankRecord& record) { record.state = to; });
  if (rank.ended()) elastic.FreeSeat(plan.ranks[worker].host, plan.ranks[worker].local_rank);
}

void JobState::StopWaiting(uint32_t worker) {
  if (ranks[worker].waiting()) Move(worker, WorkerState::kOutside);
}

void JobState::LeaveWorld(uint32_t worker) {
  if (ranks[worker].state == WorkerState::kMember) Move(worker, WorkerState::kOutside);
  Change(worker, [](RankRecord& record) { record.in_generation = 0; });
}

void JobState::Lose(uint32_t worker, Loss loss) {
  if (!ranks[worker].ended()) Move(worker, WorkerState::kLost);
  counts.lost += !ranks[worker].loss;
  Change(worker, [&loss](RankRecord& record) {
    record.in_generation = 0;
    record.loss = std::move(loss);
  });
}

void JobState::NoteSlots() {
  if (elastic.hosts.empty()) return;  // of a job of fixed size, whose plan says where its slots are
  for (uint32_t worker = 0; worker < ranks.size(); ++worker) {
    const bool has_slot = elastic.HasSlot(plan.ranks[worker]);
    if (has_slot != ranks[worker].has_slot)
      Change(worker, [has_slot](RankRecord& record) { record.has_slot = has_slot; });
  }
}

void JobState::Recount() {
  counts = {};
  kinds = {};
  for (ElasticHost& host : elastic.hosts) host.taken.clear();
  for (uint32_t worker = 0; worker < ranks.size(); ++worker) {
    const RankRecord& rank = ranks[worker];
    counts.begun += rank.state != WorkerState::kStarting;
    counts.ended += rank.ended();
    counts.waiting += rank.waiting();
    counts.lost += rank.loss.has_value();
    kinds.Add(rank);
    if (!rank.ended() && !elastic.hosts.empty())
      elastic.hosts[plan.ranks[worker].host].taken.insert(plan.ranks[worker].local_rank);
  }
  NoteSlots();
  elastic.CountHosts();
}

std::optional<uint32_t> JobState::WorkerOf(uint32_t rank) const {
  const std::vector<Member>& members = elastic.generation.members;
  return rank < members.size() ? std::optional(members[rank].worker) : std::nullopt;
}

const Placement* JobState::PlaceOf(uint32_t rank) const {
  if (rank >= size()) return nullptr;
  return policy().ranks_change ? &elastic.generation.members[rank].place : &plan.ranks[rank];
}

uint32_t JobState::size() const {
  return policy().ranks_change ? elastic.generation.size() : plan.size();
}

Plan JobState::GenerationPlan() const {
  if (!policy().ranks_change) return plan;
  Plan present{plan.hosts, {}, elastic.generation.homogeneous};
  for (const Member& member : elastic.generation.members) present.ranks.push_back(member.place);
  return present;
}

}  // namespace hvd
