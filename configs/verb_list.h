// The subcommands of hvdrun, one row each: the source of --help, the manual page and the
// completions. Each is implemented by a file of cmd/hvdrun. Pure.
#ifndef HVD_CONFIGS_VERB_LIST_H_
#define HVD_CONFIGS_VERB_LIST_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// An option of a verb, or one of its tools: "report FILE [--json]".
struct VerbEntry {
  std::string_view term, text;
  std::vector<std::string_view> words;  // for completion
};

struct VerbRow {
  std::string_view name;
  std::string_view arguments;  // as shown behind the name; may be empty
  std::string_view summary;    // one line of `hvdrun -h`
  std::string_view text;       // one paragraph
  std::vector<VerbEntry> entries = {};
  std::string_view end = {};    // one more paragraph
  bool takes_job = false;       // a job may follow
  bool of_detached = false;     // for detached jobs only: -h lists these in one line
  bool takes_file = false;      // a file may follow
  bool takes_settings = false;  // its options are rows of the settings table
};

std::span<const VerbRow> VerbRows();
const VerbRow* FindVerb(std::string_view name);

// "doctor env ps stop trace"
std::string VerbNames();
// "--once --json", of all entries.
std::string WordsOf(const VerbRow& verb);

// The verb that is meant by a word that is none of them, or empty.
std::string_view NearestVerb(std::string_view word);

}  // namespace hvd

#endif  // HVD_CONFIGS_VERB_LIST_H_
