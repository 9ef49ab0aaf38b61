// The process that another launcher starts for each rank (`hvdrun worker`): it gives its place to
// the agent of its host, which starts the rank there, and waits until the rank has ended.
#ifndef HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_
#define HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_

#include <cstdint>
#include <string>

namespace hvd {

// `hosts`: of the job; the agent of one of them is here. Ends as the rank did; returns an exit code
// when there was none.
int HoldPlace(const std::string& job_id, uint32_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_HOLDER_H_
