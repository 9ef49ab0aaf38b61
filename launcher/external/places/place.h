// A place in the world of another launcher (mpirun, jsrun): what a process started by it reports to
// the agent.
#ifndef HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_H_
#define HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/process/process_end.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

struct PlaceNumber {
  uint32_t place = 0, of = 0;
  bool operator==(const PlaceNumber&) const = default;
};

struct Place {
  PlaceNumber number;
  std::vector<std::string> environment;  // "NAME=value", of the process that holds it
  std::vector<int> cpus;                 // to which it was bound; empty: not bound
  UniqueFd pmi;  // PMI connection of MPICH and its derivatives; invalid: none
};

// From the launcher's environment variables; nothing if there are none.
std::optional<PlaceNumber> PlaceNumberOf(
    const std::function<std::optional<std::string>(const char*)>& env);

// Text format of the protocol; nothing for invalid text.
std::string PlaceText(PlaceNumber number);
std::optional<PlaceNumber> ParsePlace(const std::string& text);

// The variables of `place` that the launcher added or changed: without those of the driver, of
// every login on this host, and of the process itself. `own`: environment of the agent.
std::vector<std::string> VariablesOfLauncher(const std::vector<std::string>& place,
                                             const std::vector<std::string>& driver,
                                             const std::vector<std::string>& own);

// The abstract unix address at which the agent with this id accepts places.
std::string PlaceAddress(const std::string& agent_job_id);

// The agent's message on how the rank ended, to the process that holds the place.
std::string PlaceEndText(const ProcessEnd& end);
// Nothing for anything else.
std::optional<ProcessEnd> ParsePlaceEnd(const std::string& text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_H_
