// Texts generated from the settings table: manual page, shell completions, settings page.
#ifndef HVD_CONFIGS_REFERENCE_TEXT_H_
#define HVD_CONFIGS_REFERENCE_TEXT_H_

#include <span>
#include <string>

#include "configs/horovod_settings.h"
#include "configs/settings_table.h"

namespace hvd {

std::string ManPage(std::span<const Row> rows);         // troff for hvdrun(1)
std::string BashCompletion(std::span<const Row> rows);  // for hvdrun and horovodrun
std::string ZshCompletion(std::span<const Row> rows);   // a file _hvdrun
std::string FishCompletion(std::span<const Row> rows);  // a file hvdrun.fish
// docs/settings.md: every setting, then those of horovodrun with the answer to each.
std::string SettingsPage(std::span<const Row> rows, std::span<const HorovodSetting> others);

// docs/launcher-words.md: the options of other launchers.
std::string LauncherWordsPage();

}  // namespace hvd

#endif  // HVD_CONFIGS_REFERENCE_TEXT_H_
