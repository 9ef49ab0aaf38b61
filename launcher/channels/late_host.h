// Hosts that are not there yet: names that do not resolve, and addresses at which no SSH server
// answers. Decides whether they may be there later, and when to retry. The name of a pod or cloud
// machine, and its server, may appear minutes after hvdrun learns of it; until then name servers
// answer "no such name", and connections are refused. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_LATE_HOST_H_
#define HVD_LAUNCHER_CHANNELS_LATE_HOST_H_

#include <string_view>

#include "launcher/channels/host_channel.h"
#include "runtime/base/clock.h"

namespace hvd {

// False for names that can never resolve: a label that is empty or longer than 63 bytes, more than
// 253 bytes in all, a last label of digits only (a misspelt address), anything with ":" or a blank,
// and names under .invalid.
bool MayResolveLater(std::string_view name);

// What a connection that failed with this errno value says of a server that may start later, as
// ChannelEnd::no_answer; "": it failed for another reason.
std::string_view NoAnswerText(int error);

// Whether to retry a channel that ended so. `servers_come_late`: a server that does not answer may
// start later; elsewhere it is missing, or its address is wrong.
bool MayRetry(const ChannelEnd& end, bool servers_come_late);

// The pause after `tries` failed attempts: 0.1 s, 0.2, 0.4, 0.8, then a tenth more each time, up to
// 5 s: it stays about a tenth of what was waited.
Duration PauseBeforeRetry(int tries);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_LATE_HOST_H_
