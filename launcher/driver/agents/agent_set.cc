#include "launcher/driver/agents/agent_set.h"

#include <algorithm>

namespace hvd {

void AgentSet::Open() {
  for (auto& agent : agents_) agent->Open();
}

void AgentSet::SendToAll(const ToAgent& message) {
  for (auto& agent : agents_) agent->Send(message);
}

void AgentSet::BreakUnless(uint32_t host, const Status& status) {
  if (!status.ok()) agents_[host]->Break(status.message());
}

TimePoint AgentSet::NextTick() const {
  TimePoint next = TimePoint::max();
  for (const auto& agent : agents_) next = std::min(next, agent->NextTick());
  return next;
}

void AgentSet::Tick() {
  for (auto& agent : agents_) agent->Tick();
}

}  // namespace hvd
