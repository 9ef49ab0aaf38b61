// How an agent of a step connects to its driver (invitation.h). Blocks, in a process of one thread
// that does nothing else yet.
#ifndef HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_
#define HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_

#include <string>

#include "launcher/overlay/dial/invitation.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// For both together an agent takes less time than its driver gives it.
struct DialLimits {
  Duration invitation = std::chrono::seconds(10);  // until the line has come
  Duration connection = std::chrono::seconds(4);
};

// Reads the line from `input`, and no more than kMostInvitationBytes. Not ok: completes "the agent
// cannot connect to hvdrun: ".
Result<Invitation> ReadInvitation(int input, Duration limit);
// As the agent with this id.
Result<SealedLine> DialDriver(const Invitation& invitation, const std::string& agent_job_id,
                              Duration limit, const Clock& clock);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_DIAL_DRIVER_H_
