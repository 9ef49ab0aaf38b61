#include "launcher/job/state/job_state.h"

namespace hvd {

void JobState::Becomes(RankRecord& rank, RankPhase to) {
  counts.begun += rank.phase == RankPhase::kStarting && to != RankPhase::kStarting;
  counts.ended += rank.phase != RankPhase::kEnded && to == RankPhase::kEnded;
  rank.phase = to;
}

void JobState::Waits(RankRecord& rank, bool to_wait) {
  if (rank.waiting == to_wait) return;
  rank.waiting = to_wait;
  to_wait ? ++counts.waiting : --counts.waiting;
}

std::optional<uint32_t> JobState::WorkerOf(uint32_t rank) const {
  const std::vector<Member>& members = elastic.generation.members;
  return rank < members.size() ? std::optional(members[rank].worker) : std::nullopt;
}

}  // namespace hvd
