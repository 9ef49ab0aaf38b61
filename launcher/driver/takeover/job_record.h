// Serializes the state of an elastic job for the hvdrun that takes over: hosts, workers, the last
// generation, failures, running time limits, and a pending notice, including agents' facts known to
// hvdrun. Not included: options and limits of the command line. Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_

#include <string>
#include <string_view>

#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

std::string EncodeJobState(const JobState& state);
// `state`: with the same options, limits and seed, before its first event. All hosts count as
// ready; the clocks of other machines must be read again. False: invalid bytes.
bool DecodeJobState(std::string_view bytes, JobState& state, TimePoint now);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_JOB_RECORD_H_
