// How the rank that took a place has ended, as its agent tells the process that held it. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_END_H_
#define HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_END_H_

#include <optional>
#include <string>

#include "launcher/process/process_end.h"

namespace hvd {

std::string PlaceEndText(const ProcessEnd& end);
// Nothing for anything else.
std::optional<ProcessEnd> ParsePlaceEnd(const std::string& text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_END_H_
