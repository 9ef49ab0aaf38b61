// The state of an elastic job as bytes, for the hvdrun that takes over: hosts, workers, the last
// generation, failures, limits that run, and a notice that is on its way. What agents know is in
// it, too, as far as hvdrun had heard of it. What the command line says is not: options and limits.
// Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_

#include <string>
#include <string_view>

#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

std::string EncodeJobState(const JobState& state);
// `state`: of the same options, limits and seed, before its first event. All hosts count as ready;
// the clocks of other machines are to be read again. False: these are not the bytes of a state.
bool DecodeJobState(std::string_view bytes, JobState& state, TimePoint now);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_
