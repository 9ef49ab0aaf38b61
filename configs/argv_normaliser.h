// The argv normaliser: converts arguments as typed ("-np 4", "-np=4", "--verb", "-hostfile f") to
// one canonical form per option, and finds the start of the user's command. Refuses unknown and
// ambiguous options and missing values. Pure.
#ifndef HVD_CONFIGS_ARGV_NORMALISER_H_
#define HVD_CONFIGS_ARGV_NORMALISER_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/settings_table.h"
#include "runtime/base/status.h"

namespace hvd {

struct GivenOption {
  const Row* row = nullptr;
  std::string typed;                 // the flag as the user typed it, without the value
  std::optional<std::string> value;  // "on" or "off" for a switch; nothing for an action
};

struct NormalisedArgv {
  std::vector<GivenOption> options;  // in order
  std::vector<std::string>
      command;  // everything from the first token that is not an option, or after "--"
};

// -h, --help and --version end parsing: `command` has at most one of the words after them.
Result<NormalisedArgv> NormaliseArgv(std::span<const std::string> args, std::span<const Row> rows);

}  // namespace hvd

#endif  // HVD_CONFIGS_ARGV_NORMALISER_H_
