// AgentSet: the connections of a job to the agents of its hosts, by the number of the host.
//
// One thread, that of the channels.
#ifndef HVD_LAUNCHER_DRIVER_AGENTS_AGENT_SET_H_
#define HVD_LAUNCHER_DRIVER_AGENTS_AGENT_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/driver/agents/agent_connection.h"

namespace hvd {

class AgentSet {
 public:
  // The connection of the next host.
  void Add(std::unique_ptr<AgentConnection> agent) { agents_.push_back(std::move(agent)); }
  void Open();

  uint32_t count() const { return static_cast<uint32_t>(agents_.size()); }
  AgentConnection& operator[](uint32_t host) const { return *agents_[host]; }
  void Send(uint32_t host, const ToAgent& message) { agents_[host]->Send(message); }
  void SendToAll(const ToAgent& message);
  // Gives the host up unless the status is ok.
  void BreakUnless(uint32_t host, const Status& status);

  // As in AgentConnection, for the earliest of them.
  TimePoint NextTick() const;
  void Tick();

 private:
  std::vector<std::unique_ptr<AgentConnection>> agents_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENTS_AGENT_SET_H_
