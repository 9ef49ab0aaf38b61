// AdoptedAgentConnector: connects a rank that hvdrun did not start to an agent. The first rank of a
// host that finds none starts `hvdrun agent --adopt`; the others connect to it. bind() decides
// which rank is first: the winner creates the listening socket and passes it to the agent, so that
// it exists at all times. The agent then listens on its own: the rank may exit first, e.g. if a
// second script of the rank uses the agent of the first.
#ifndef HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_
#define HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_

#include <string>
#include <vector>

#include "runtime/base/text/format.h"
#include "runtime/bootstrap/agent_link.h"
#include "runtime/bootstrap/launcher_detection.h"

namespace hvd {

// 32 hexadecimal digits, the same for all ranks of this job on this host and in this container, and
// unique to them.
std::string AdoptedJobId(const ExternalRank& rank);
// The abstract socket address of the adopting agent.
std::string AdoptAddress(const std::string& job_id, uint32_t user);
// The arguments of the agent, without the program name.
std::vector<std::string> AdoptArguments(const ExternalRank& rank, const std::string& job_id);

class AdoptedAgentConnector final : public AgentConnector {
 public:
  // `hvdrun`: path of the program; empty: the one installed with this library.
  AdoptedAgentConnector(ExternalRank rank, std::string hvdrun);

  Result<UniqueFd> Open() override;
  bool Reopens() const override { return true; }
  std::string who() const override { return Format("rank {} of {}", rank_.rank, rank_.size); }

 private:
  // Sends this rank's identity, and from local rank 0 also the layout of all ranks if known.
  Status Introduce(int socket) const;
  Status StartAgent(UniqueFd listener) const;
  void WarnOfOpenKey() const;

  const ExternalRank rank_;
  const std::string hvdrun_, job_id_, address_;
  std::string secret_;  // of the job, set by Open; "": none
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_
