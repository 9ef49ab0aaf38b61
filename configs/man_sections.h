// The sections of the manual page apart from the settings: exit codes, variables and files.
// docs/errors.md has the same codes. Pure.
#ifndef HVD_CONFIGS_MAN_SECTIONS_H_
#define HVD_CONFIGS_MAN_SECTIONS_H_

#include <span>
#include <string_view>

namespace hvd {

struct ManRow {
  std::string_view term;  // such as "124", "HOME" or "~/.ssh/config"
  std::string_view text;  // sentences
};

std::span<const ManRow> ExitStatusRows();
// Variables without a setting: those that hvdrun reads, then those that it sets in workers.
std::span<const ManRow> EnvironmentRows();
std::span<const ManRow> FileRows();

}  // namespace hvd

#endif  // HVD_CONFIGS_MAN_SECTIONS_H_
