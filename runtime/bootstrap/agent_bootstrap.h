// AgentBootstrap: a worker with an agent on its host, started by hvdrun (agent_door.h) or adopted
// (adopted_agent_connector.h).
#ifndef HVD_RUNTIME_BOOTSTRAP_AGENT_BOOTSTRAP_H_
#define HVD_RUNTIME_BOOTSTRAP_AGENT_BOOTSTRAP_H_

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/bootstrap/agent_link.h"
#include "runtime/bootstrap/bootstrap.h"

namespace hvd {

struct AgentAddress {
  std::string name;     // HVD_AGENT
  uint32_t slot = 0;    // HVD_SLOT
  std::string job_key;  // HVD_JOB_KEY
  uint32_t size = 0;    // HOROVOD_SIZE, of the world; 0: unknown
  bool operator==(const AgentAddress&) const = default;
};

// Connects to the agent that hvdrun started before this process.
class HvdrunConnector final : public AgentConnector {
 public:
  explicit HvdrunConnector(AgentAddress address) : address_(std::move(address)) {}
  Result<UniqueFd> Open() override;
  bool Reopens() const override { return false; }
  std::string who() const override { return Format("slot {}", address_.slot); }

 private:
  const AgentAddress address_;
};

class AgentBootstrap final : public Bootstrap, private SegmentSource, private KvStore {
 public:
  explicit AgentBootstrap(std::unique_ptr<AgentConnector> connector)
      : connector_(std::move(connector)) {}
  explicit AgentBootstrap(AgentAddress address)
      : AgentBootstrap(std::make_unique<HvdrunConnector>(std::move(address))) {}

  Result<World> Join(Duration timeout) override;
  void Leave(uint64_t generation, TimePoint since) override { link_.Leave(generation, since); }
  SegmentSource& segments() override { return *this; }
  KvStore& directory() override { return *this; }
  Status PollAgent() override { return link_.PollAgent(); }
  bool watched() const override { return true; }
  void CloseAfterFork() override { link_.CloseAfterFork(); }

 private:
  Result<DataSegment> Allocate(uint64_t bytes) override { return Ask(LinkAllocate{bytes}, 0); }
  Result<DataSegment> Fetch(uint32_t id) override { return Ask(LinkFetch{id}, id); }
  void Free(uint32_t id) override { (void)link_.Send(LinkFree{id}); }
  Result<DataSegment> Ask(const LinkMessage& question, uint32_t wanted);

  Status Put(const std::string& key, const std::string& value) override {
    return link_.Put(key, value);
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    return link_.Get(key, timeout);
  }

  std::unique_ptr<AgentConnector> connector_;
  AgentLink link_{*connector_};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_AGENT_BOOTSTRAP_H_
