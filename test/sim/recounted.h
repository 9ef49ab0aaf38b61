// What the state of a job counts as it changes, beside what it would count anew.
#ifndef HVD_TEST_SIM_RECOUNTED_H_
#define HVD_TEST_SIM_RECOUNTED_H_

#include <cstddef>
#include <string>

#include "launcher/job/state/job_state.h"

namespace hvd::test {

// Which of the counts is wrong; empty: none.
inline std::string WrongCount(const JobState& state) {
  JobState again = state;
  again.Recount();
  if (state.counts != again.counts) return "the ranks in each state are counted wrongly";
  if (state.kinds != again.kinds) return "the workers of each kind are counted wrongly";
  for (size_t worker = 0; worker < state.ranks.size(); ++worker) {
    if (state.ranks[worker].has_slot != again.ranks[worker].has_slot)
      return "it is wrong whether worker " + std::to_string(worker) + " has a slot";
  }
  for (size_t host = 0; host < state.elastic.hosts.size(); ++host) {
    if (state.elastic.hosts[host].taken != again.elastic.hosts[host].taken)
      return "the seats taken on host " + std::to_string(host) + " are wrong";
  }
  return state.elastic.host_counts == again.elastic.host_counts
             ? ""
             : "the seats and hosts are counted wrongly";
}

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_RECOUNTED_H_
