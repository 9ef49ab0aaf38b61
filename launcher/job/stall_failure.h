// A stall as the reason for the end of a generation. Pure.
#ifndef HVD_LAUNCHER_JOB_STALL_FAILURE_H_
#define HVD_LAUNCHER_JOB_STALL_FAILURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/job_state.h"

namespace hvd {

// What the user reads while the job goes on: several lines, without the last newline.
std::string StallText(const Verdict& verdict);

// A wait that can never end.
JobFailure EndlessStall(const Verdict& verdict);

// A rank ends its generation with this reason. If the last verdict is about that generation, and
// the rank has a limit, the verdict explains it.
JobFailure EndingOf(const JobState& state, uint64_t generation, std::string reason);

// The ranks of a verdict that are in the middle of something else and do not hear that their
// generation is over.
std::vector<uint32_t> HangingRanks(const Verdict& verdict);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STALL_FAILURE_H_
