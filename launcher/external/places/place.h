// A place in the world of another launcher (mpirun, jsrun): the facts that a process that it
// started tells an agent about it.
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
  std::vector<int> cpus;                 // that it was bound to; empty: to none
  UniqueFd pmi;  // by which MPICH and its relatives know the rank; invalid: there is none
};

// The launcher's variables in a process that it started; nothing when there are none.
std::optional<PlaceNumber> PlaceNumberOf(
    const std::function<std::optional<std::string>(const char*)>& env);

// As both sides write it; nothing for anything else.
std::string PlaceText(PlaceNumber number);
std::optional<PlaceNumber> ParsePlace(const std::string& text);

// The variables that the launcher added to the environment of `place`, or changed: without those of
// the driver, those of every login on this host, and those of the process alone. `own`: of the
// agent.
std::vector<std::string> VariablesOfLauncher(const std::vector<std::string>& place,
                                             const std::vector<std::string>& driver,
                                             const std::vector<std::string>& own);

// Where the agent of this job (its own id) takes places: an abstract unix address.
std::string PlaceAddress(const std::string& agent_job_id);

// How the rank that took a place has ended, as its agent tells the process that held it.
std::string PlaceEndText(const ProcessEnd& end);
// Nothing for anything else.
std::optional<ProcessEnd> ParsePlaceEnd(const std::string& text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_H_
