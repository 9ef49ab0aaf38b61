// The process that another launcher starts per rank (`hvdrun worker`): hands its place to the agent
// of its host, which starts the rank, and waits for the rank's end.
#ifndef HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_
#define HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_

#include <cstdint>
#include <string>

namespace hvd {

// `hosts`: number of hosts of the job, one of which is this machine. Ends the process the way the
// rank ended; returns an exit code if there was no rank.
int HoldPlace(const std::string& job_id, uint32_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_
