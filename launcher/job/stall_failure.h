// A stall as the reason for the end of a generation. Pure.
#ifndef HVD_LAUNCHER_JOB_STALL_FAILURE_H_
#define HVD_LAUNCHER_JOB_STALL_FAILURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/state/job_state.h"

namespace hvd {

// A wait that can never end.
JobFailure EndlessStall(const Verdict& verdict);

// Ranks that use collectives of another library have hung for as long as they may.
JobFailure ScriptStallFailure(const Verdict& verdict);

// A rank ends its generation. The verdict on a stall of that generation explains a limit
// that passed.
JobFailure EndingOf(const JobState& state, const GenerationEnding& event);

// The ranks of a verdict that are in the middle of something else and do not hear that their
// generation is over.
std::vector<uint32_t> HangingRanks(const Verdict& verdict);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STALL_FAILURE_H_
