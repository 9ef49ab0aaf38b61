// The verbs of hvdrun that a user types, one row each: the texts in --help, the manual page and the
// completions come from here. The verb itself is a file of cmd/hvdrun. Pure.
#ifndef HVD_CONFIGS_VERB_LIST_H_
#define HVD_CONFIGS_VERB_LIST_H_

#include <span>
#include <string>
#include <string_view>

namespace hvd {

struct VerbRow {
  std::string_view name;
  std::string_view arguments;  // as shown behind the name; may be empty
  std::string_view summary;    // one line of `hvdrun --help`
  std::string_view help;       // the rest of `hvdrun VERB --help`; empty: the verb prints its own
};

std::span<const VerbRow> VerbRows();

// "doctor env ps stop trace"
std::string VerbNames();

// The text that `hvdrun VERB --help` prints; prints nothing itself. Empty for a verb that prints
// its own, or none.
std::string VerbHelpText(std::string_view name);

}  // namespace hvd

#endif  // HVD_CONFIGS_VERB_LIST_H_
