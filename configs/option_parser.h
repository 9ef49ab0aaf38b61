// The option parser: parses canonical options to the last value of each row. Only its .cc includes
// CLI11.
#ifndef HVD_CONFIGS_OPTION_PARSER_H_
#define HVD_CONFIGS_OPTION_PARSER_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/argv_normaliser.h"
#include "configs/settings.h"
#include "configs/settings_table.h"
#include "runtime/base/status.h"

namespace hvd {

struct FlagValue {
  std::string typed;               // the flag as the user typed it
  std::string text;                // the last one
  std::vector<std::string> texts;  // all of them, in order
};

struct ParsedOptions {
  Action action = Action::kRun;
  std::map<std::string_view, FlagValue> values;  // by name of the row
  std::vector<std::string> command;
};

Result<ParsedOptions> ParseOptions(std::span<const std::string> args, std::span<const Row> rows);

}  // namespace hvd

#endif  // HVD_CONFIGS_OPTION_PARSER_H_
