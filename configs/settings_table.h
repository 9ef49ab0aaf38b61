// The settings table: one row per setting, the source of the option parser, environment and file
// loading, range errors, --help, --print-config and the environment of the workers. README.md says
// what else a new setting needs.
#ifndef HVD_CONFIGS_SETTINGS_TABLE_H_
#define HVD_CONFIGS_SETTINGS_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "configs/settings.h"

namespace hvd {

// kList: a text that may be given repeatedly; all values count. kIntRange: two whole numbers, two
// words after a flag, "10 100" or "10,100" elsewhere.
enum class Type {
  kAction,
  kInt,
  kIntRange,
  kFloat,
  kSeconds,
  kBytes,
  kBool,
  kEnum,
  kString,
  kList
};

// The target of a choice: one value per word in Row::choices.
struct ChoiceTarget {
  std::function<void(Settings&, size_t)> store;  // the choice with this number
  size_t count = 0;
};
template <typename E>
ChoiceTarget Chosen(E Settings::*field, std::vector<E> values) {
  const size_t count = values.size();
  return {[field, values = std::move(values)](Settings& settings, size_t choice) {
            settings.*field = values.at(choice);
          },
          count};
}

// The field that gets a row's value; for kAction, the action; none for horovod_settings.h.
using Target =
    std::variant<std::monostate, Action, int Settings::*, IntRange Settings::*, double Settings::*,
                 int64_t Settings::*, bool Settings::*, std::string Settings::*,
                 std::vector<std::string> Settings::*, ChoiceTarget>;

// The command that has a row's flag.
enum class Verb : uint8_t { kRun, kDoctor };
enum class For : uint8_t {
  kRun,     // a job; accepted and ignored by hvdrun doctor
  kBoth,    // also in the help of hvdrun doctor
  kDoctor,  // unknown to a job
};

struct Row {
  std::string_view section;  // heading in --help
  std::string_view name;     // long flag without dashes; unique
  std::vector<std::string_view>
      flags;  // all spellings, the one for messages first; a kBool "--x" also has "--no-x"
  // A variable, or empty. It works in both directions: hvdrun reads the setting from it, and a
  // value that was given, by flag, key or variable, is in the workers' environment under this
  // name. That of a setting of hvdrun's own is there, too, and has no effect.
  std::string_view env = {};
  std::string_view yaml = {};  // dotted key, or empty
  Type type = Type::kString;
  std::string_view default_text = {};  // as written by a user; empty: not set
  double min = 0, max = 0;             // for numbers, inclusive
  // For kEnum, case-insensitive; one per value of the target.
  std::vector<std::string_view> choices = {};
  std::string_view placeholder = {};  // "FILE" or "DIR" in --help and for completion
  std::string_view example = {};      // a value that works, for messages
  std::string_view what = {};         // what the value is, for messages: "the number of processes"
  std::string_view doc = {};          // of --help
  std::string_view brief = {};        // one line of -h; empty: not in -h
  std::string_view group = {};        // at most one row of a group may be given as a flag
  // Of a kBytes: the unit of a plain number, "MB", as a flag and as a key; the variable is in
  // bytes.
  std::string_view plain_unit = {};
  bool env_inverted = false;  // the variable of this kBool means the opposite: HOROVOD_X_DISABLE
  bool required = false;
  bool may_be_empty = false;      // for kString: an empty text is a valid value
  bool zero_means_unset = false;  // 0 falls through to the next source, as in horovodrun
  bool tunable = false;           // may change while the job runs
  bool hidden = false;            // for tests: in no help, manual or completion
  bool makes_elastic = false;     // giving it makes the job elastic (IsElastic)
  bool foreign = false;           // an option of another launcher: may not be abbreviated
  bool elastic_only = false;      // a line says that it has no effect if the job is not elastic
  For verbs = For::kRun;
  Target target;
};

// Number of words after the flag.
int WordsAfter(const Row& row);

std::span<const Row> SettingRows();
// The rows of the verb.
std::span<const Row> SettingRowsOf(Verb verb);
// The rows that are not hidden.
std::vector<Row> ShownRows(std::span<const Row> rows);

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTINGS_TABLE_H_
