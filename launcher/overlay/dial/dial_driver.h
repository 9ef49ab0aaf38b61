// How an agent of a step connects to its driver (invitation.h). Blocks; called while the agent has
// a single thread.
#ifndef HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_
#define HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_

#include <string>

#include "launcher/overlay/dial/invitation.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// Their sum is below the time that the driver allows.
struct DialLimits {
  Duration invitation = std::chrono::seconds(10);  // for the line to arrive
  Duration connection = std::chrono::seconds(4);
};

// Reads the line from `input`, at most kMostInvitationBytes. The error completes "the agent cannot
// connect to hvdrun: ".
Result<Invitation> ReadInvitation(int input, Duration limit);
// Connects as the agent with this id.
Result<SealedLine> DialDriver(const Invitation& invitation, const std::string& agent_job_id,
                              Duration limit, const Clock& clock);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_
