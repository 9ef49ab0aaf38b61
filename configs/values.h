// Parses and range-checks values of rows. Pure.
#ifndef HVD_CONFIGS_VALUES_H_
#define HVD_CONFIGS_VALUES_H_

#include <optional>
#include <string>
#include <string_view>

#include "configs/settings.h"
#include "configs/settings_table.h"
#include "runtime/base/status.h"

namespace hvd {

// Reads `text` as the row's type, checks its range and stores it in `settings`. Returns the
// canonical text of the value ("30", "on", "INFO"). `said`: the setting as the user wrote it
// ("-np", "HOROVOD_LOG_LEVEL"), for the message.
Result<std::string> StoreValue(const Row& row, std::string_view typed, std::string_view text,
                               Settings& settings);

// The placeholder of the value after the flag, with a leading blank: " N", " FILE"; empty for a
// switch.
std::string Placeholder(const Row& row);

// "on", "1", "true", "yes" and their opposites, in any case.
std::optional<bool> ParseBool(std::string_view text);

// Describes the allowed values: "1 to 1000000", "on or off", "TRACE, DEBUG or INFO".
std::string AllowedValues(const Row& row);

}  // namespace hvd

#endif  // HVD_CONFIGS_VALUES_H_
