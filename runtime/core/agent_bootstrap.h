// AgentBootstrap: a worker under hvdrun. Speaks runtime/net/link.h with the agent of its host.
#ifndef HVD_RUNTIME_CORE_AGENT_BOOTSTRAP_H_
#define HVD_RUNTIME_CORE_AGENT_BOOTSTRAP_H_

#include <mutex>
#include <string>

#include "runtime/core/bootstrap.h"
#include "runtime/net/link.h"

namespace hvd {

struct AgentAddress {
  std::string name;     // HVD_AGENT
  uint32_t slot = 0;    // HVD_SLOT
  std::string job_key;  // HVD_JOB_KEY
};

class AgentBootstrap final : public Bootstrap, private SegmentSource {
 public:
  explicit AgentBootstrap(AgentAddress address) : address_(std::move(address)) {}

  Result<World> Join(Duration timeout) override;
  void Leave(uint64_t epoch) override;
  SegmentSource& segments() override { return *this; }
  Status Attend() override;
  bool watched() const override { return true; }
  void CloseAfterFork() override { socket_.Reset(); }

 private:
  Result<DataSegment> Allocate(uint64_t bytes) override;
  Result<DataSegment> Fetch(uint32_t id) override;
  void Free(uint32_t id) override;

  // With the lock held.
  Status Connect();
  Status Say(const LinkMessage& message);
  Result<ReceivedLink> Hear(Duration timeout);
  Result<World> AwaitEpoch(Duration timeout);
  Result<DataSegment> AwaitSegment(uint32_t wanted);

  const AgentAddress address_;
  std::mutex mutex_;
  UniqueFd socket_;  // connected when first needed, kept for the life of the process
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_AGENT_BOOTSTRAP_H_
