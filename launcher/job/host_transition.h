// HostTransition: the beginning and the end of agents, applied to the state of a job.
#ifndef HVD_LAUNCHER_JOB_HOST_TRANSITION_H_
#define HVD_LAUNCHER_JOB_HOST_TRANSITION_H_

#include <cstdint>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

class HostTransition {
 public:
  // `change` outlives this object.
  explicit HostTransition(ElasticChange& change)
      : change_(change.job), state_(change.state), members_(change) {}

  void Handle(const AgentIsReady& event);
  void Handle(const AgentFinished& event);
  void Handle(const AgentLost& event);
  // The agent received this signal, a request to end, while its ranks were not training.
  void End(uint32_t host, int signal);
  // Gives up hosts that have exceeded the limit of their stage.
  void Expire();

 private:
  bool FailedOfIt(uint32_t host) const;
  bool AllHadFinished(uint32_t host) const;

  JobChange& change_;
  JobState& state_;
  ElasticChange& members_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_TRANSITION_H_
