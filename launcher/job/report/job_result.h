// The result of a job. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_JOB_RESULT_H_
#define HVD_LAUNCHER_JOB_REPORT_JOB_RESULT_H_

#include <cstdint>
#include <optional>

#include "launcher/job/state/job_state.h"

namespace hvd {

// The first cause of a failed job, when it is a rank: the one that left the others first, whatever
// its peers did then (first_cause.h).
std::optional<uint32_t> FirstFailedRank(const JobState& state);

// Whether the rank ended with an exception about a lost peer, as its stderr shows. False in a job
// with generations: ranks of such a job use our runtime, which reports losses itself.
bool SaysThatAPeerWasLost(const JobState& state, const RankRecord& rank);

// The signal that asked the ranks to stop after their step; 0: none did.
int StopSignal(const JobState& state);

// Whether neither a signal nor a limit ended the job. Then hvdrun waits without a limit until its
// last output has been read, otherwise for finish_limit at most.
bool EndedByItself(const JobState& state);

// The exit code of hvdrun, once the phase is kDone.
int ExitCode(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_JOB_RESULT_H_
