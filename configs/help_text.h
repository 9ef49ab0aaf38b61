// Help texts generated from the settings table.
#ifndef HVD_CONFIGS_HELP_TEXT_H_
#define HVD_CONFIGS_HELP_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "configs/setting_sources.h"
#include "configs/settings_table.h"

namespace hvd {

struct SettingOrigin {
  std::string_view name;
  std::string value;   // empty: not set
  std::string origin;  // "default", "-np", "HOROVOD_LOG_LEVEL", "job.yaml:3"
  Strength strength = Strength::kDefault;
};

// hvdrun -h: one screen.
std::string BriefHelpText(std::span<const Row> rows);
// hvdrun --help: everything, in sections.
std::string HelpText(std::span<const Row> rows);
// hvdrun help TOPIC: the help of a verb, or of a section by a word of its title; empty: none.
std::string HelpTextOf(std::string_view topic, std::span<const Row> rows);
// "hosts, mpi, ...", for a message.
std::string HelpTopics();
// What `hvdrun VERB --help` prints; empty for no verb.
std::string VerbHelpText(std::string_view name);
// For hvdrun doctor: its options on one screen, and all its rows.
std::string BriefDoctorHelpText(std::span<const Row> rows);
std::string DoctorHelpText(std::span<const Row> rows);
// One line per setting: name, value, origin, in aligned columns.
std::string PrintConfigText(std::span<const SettingOrigin> settings);

}  // namespace hvd

#endif  // HVD_CONFIGS_HELP_TEXT_H_
