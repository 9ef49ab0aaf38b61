#include "launcher/job/state/job_state.h"

#include <cassert>

namespace hvd {

void JobState::Move(RankRecord& rank, WorkerState to) {
  assert(MayFollow(rank.state, to));
  const auto change = [&rank, to](size_t& count, auto counts) {
    count += counts(to);
    count -= counts(rank.state);
  };
  change(counts.begun, [](WorkerState state) { return state != WorkerState::kStarting; });
  change(counts.ended, [](WorkerState state) { return state == WorkerState::kEnded; });
  change(counts.waiting, [](WorkerState state) { return state == WorkerState::kInInit; });
  rank.state = to;
}

void JobState::StopWaiting(RankRecord& rank) {
  if (rank.waiting()) Move(rank, WorkerState::kOutside);
}

void JobState::LeaveWorld(RankRecord& rank) {
  if (rank.state == WorkerState::kMember) Move(rank, WorkerState::kOutside);
  rank.in_generation = 0;
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
