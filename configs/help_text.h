// The texts that are generated from the settings table.
#ifndef HVD_CONFIGS_HELP_TEXT_H_
#define HVD_CONFIGS_HELP_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "configs/settings_table.h"

namespace hvd {

struct SettingOrigin {
  std::string_view name;
  std::string value;   // empty: not set
  std::string origin;  // "default", "-np", "HOROVOD_LOG_LEVEL", "job.yaml:3"
};

std::string HelpText(std::span<const Row> rows);
// Of hvdrun doctor: the rows that concern it.
std::string DoctorHelpText(std::span<const Row> rows);
// One line per setting: name, value, origin, in aligned columns.
std::string PrintConfigText(std::span<const SettingOrigin> settings);

}  // namespace hvd

#endif  // HVD_CONFIGS_HELP_TEXT_H_
