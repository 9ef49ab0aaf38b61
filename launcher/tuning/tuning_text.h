// Formats stored results as text, JSON and configuration. Pure.
#ifndef HVD_LAUNCHER_TUNING_TUNING_TEXT_H_
#define HVD_LAUNCHER_TUNING_TUNING_TEXT_H_

#include <cstdint>
#include <map>
#include <string>

#include "launcher/tuning/tuning_memory.h"

namespace hvd {

// "+6.2 % (+4.1 % to +8.4 %)"; "none that could be measured".
std::string GainText(const RememberedTuning& found);

// One line each, newest first; `now`: seconds since 1970.
std::string TuningTable(const std::map<std::string, RememberedTuning>& results, int64_t now);
// All facts of one result, one per line.
std::string TuningDetails(const std::string& id, const RememberedTuning& found);
// An array of objects, by id.
std::string TuningJson(const std::map<std::string, RememberedTuning>& results);

// "runtime.chunk_kib" -> "256": keys of --config-file.
std::map<std::string, std::string> ConfigOf(const RememberedTuning& found);
// Comments on the origin of the settings that follow.
std::string ConfigHead(const std::string& id, const RememberedTuning& found);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNING_TEXT_H_
