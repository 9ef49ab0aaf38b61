// AdoptedAgentConnector: how a rank that hvdrun did not start comes to an agent. The first rank of
// a host that finds none starts one, `hvdrun agent --adopt`; the others connect to it. Which rank
// is first is decided by bind: the winner makes the listening socket and hands it to the agent, so
// that there is no moment in which the others could find nobody. The agent then listens in its own
// name: the rank may end before it does, as where the second script of a rank finds the agent of
// the first.
#ifndef HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_
#define HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_

#include <string>
#include <vector>

#include "runtime/base/text/format.h"
#include "runtime/bootstrap/agent_link.h"
#include "runtime/bootstrap/launcher_detection.h"

namespace hvd {

// Of 32 hexadecimal digits: the same for all ranks of this job on this host, in this container, and
// for nobody else.
std::string AdoptedJobId(const ExternalRank& rank);
// The abstract address of the adopting agent.
std::string AdoptAddress(const std::string& job_id, uint32_t user);
// The command line of the agent, without the program.
std::vector<std::string> AdoptArguments(const ExternalRank& rank, const std::string& job_id);

class AdoptedAgentConnector final : public AgentConnector {
 public:
  // `hvdrun`: the program; empty: the one beside this library.
  AdoptedAgentConnector(ExternalRank rank, std::string hvdrun);

  Result<UniqueFd> Open() override;
  bool Reopens() const override { return true; }
  std::string who() const override { return Format("rank {} of {}", rank_.rank, rank_.size); }

 private:
  // Says who this rank is, and where all ranks are if it knows that and the agent does not.
  Status Introduce(int socket) const;
  Status StartAgent(UniqueFd listener) const;
  void WarnOfOpenKey() const;

  const ExternalRank rank_;
  const std::string hvdrun_, job_id_, address_;
  std::string secret_;  // of the job, once it was opened; "": it has none
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_ADOPTED_AGENT_CONNECTOR_H_
