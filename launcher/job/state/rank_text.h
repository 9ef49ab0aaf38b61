// Texts about ranks and how they ended, for the messages of a job. Pure.
#ifndef HVD_LAUNCHER_JOB_STATE_RANK_TEXT_H_
#define HVD_LAUNCHER_JOB_STATE_RANK_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/state/job_state.h"

namespace hvd {

// "rank 2 (pid 1234)"; by the worker's number.
std::string RankText(const JobState& state, uint32_t worker);
// "rank 2 (pid 1234)", "ranks 0,2-3 (pids 1230, 1232, 1233)"
std::string RanksText(const JobState& state, const std::vector<uint32_t>& ranks);
// "was ended by signal 9", "ended with exit code 3"
std::string EndText(const ProcessEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_RANK_TEXT_H_
