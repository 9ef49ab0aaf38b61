// The settings table: one row per setting, from which come the option parser, the environment and
// file loading, range errors, --help, --print-config and the environment of the workers. A new
// setting is a new row and a field in Settings.
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

// kList is a text that may be given many times; every one counts. kIntRange is two whole numbers:
// two words after a flag, "10 100" or "10,100" elsewhere.
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

// Where a choice goes: one value for each word in Row::choices.
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

// Where the value of a row goes; for kAction, the action that the flag asks for; nowhere for
// horovod_settings.h.
using Target =
    std::variant<std::monostate, Action, int Settings::*, IntRange Settings::*, double Settings::*,
                 int64_t Settings::*, bool Settings::*, std::string Settings::*,
                 std::vector<std::string> Settings::*, ChoiceTarget>;

// Whose flags a row has.
enum class Verb : uint8_t { kRun, kDoctor };
enum class For : uint8_t {
  kRun,     // a job; hvdrun doctor takes it, too, and has no use for it
  kBoth,    // also in the help of hvdrun doctor
  kDoctor,  // unknown to a job
};

struct Row {
  std::string_view section;  // heading in --help
  std::string_view name;     // long flag without dashes; unique
  std::vector<std::string_view>
      flags;  // all spellings, the one for messages first; "--x" of a kBool has "--no-x" too
  // Variable that hvdrun reads, and that workers get with the value if one was given; or empty.
  std::string_view env = {};
  std::string_view yaml = {};  // dotted key, or empty
  Type type = Type::kString;
  std::string_view default_text = {};  // as a person would write it; empty: not set
  double min = 0, max = 0;             // for numbers, inclusive
  // For kEnum, compared without case; as many as the target has values.
  std::vector<std::string_view> choices = {};
  std::string_view placeholder = {};  // "FILE" or "DIR" in --help and for completion
  std::string_view example = {};      // a value that works, for messages
  std::string_view what = {};         // what the value is, for messages: "the number of processes"
  std::string_view doc = {};          // of --help
  std::string_view brief = {};        // one line of -h; empty: the row is not in it
  std::string_view group = {};        // of the rows of one group at most one may be given as a flag
  // Of a kBytes: the unit of a plain number, "MB", as a flag and as a key; the variable is in
  // bytes.
  std::string_view plain_unit = {};
  bool env_inverted = false;  // the variable of this kBool means the opposite: HOROVOD_X_DISABLE
  bool required = false;
  bool may_be_empty = false;      // for kString: an empty text is a value, too
  bool zero_means_unset = false;  // 0 falls through to the next origin, as horovodrun does it
  bool tunable = false;           // may change while the job runs
  bool hidden = false;            // for tests: in no help, manual or completion
  bool makes_elastic = false;     // that it is given makes the job elastic (IsElastic)
  bool foreign = false;           // an option of another launcher: only its whole word means it
  bool elastic_only = false;      // a line says that it has no effect where the job is not elastic
  For verbs = For::kRun;
  Target target;
};

// How many words follow the flag.
int WordsAfter(const Row& row);

std::span<const Row> SettingRows();
// Those that the verb takes.
std::span<const Row> SettingRowsOf(Verb verb);
// Those that people are told of.
std::vector<Row> ShownRows(std::span<const Row> rows);

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTINGS_TABLE_H_
