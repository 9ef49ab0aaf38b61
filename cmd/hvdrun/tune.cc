// hvdrun tune show|export|apply|forget: the results that --autotune remembers.
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/help_text.h"
#include "configs/message_text.h"
#include "configs/yaml_file.h"
#include "launcher/output/output.h"
#include "launcher/tuning/tuning_memory.h"
#include "launcher/tuning/tuning_text.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/output_file.h"
#include "runtime/base/read_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Words = std::vector<std::string>;
using Results = std::map<std::string, RememberedTuning>;

// The results of this user; reports damaged files.
Results ResultsIn(const TuningMemory& memory) {
  TuningMemory::Listed listed = memory.All();
  for (const std::string& sentence : listed.damaged) VerbLine("tune", sentence);
  return std::move(listed.results);
}

// The one result whose id begins with `prefix`.
Result<Results::value_type> Chosen(const TuningMemory& memory, const std::string& prefix) {
  const Results results = ResultsIn(memory);
  if (results.empty()) {
    return InvalidArgument("nothing is remembered in " + memory.folder() +
                           "; hvdrun --autotune remembers on the host of rank 0");
  }
  Results matching;
  for (const auto& entry : results) {
    if (entry.first.starts_with(prefix)) matching.insert(entry);
  }
  if (matching.size() == 1) return *matching.begin();
  if (prefix.empty()) {
    return InvalidArgument(
        Format("name one of the {} results that hvdrun tune show lists", results.size()));
  }
  return InvalidArgument((matching.empty() ? "no result" : "more than one result") +
                         std::string(" begins with ") + Quoted(prefix) +
                         "; hvdrun tune show lists them");
}

int Show(const TuningMemory& memory, const Words& all_words) {
  Words words = all_words;
  const bool json = std::erase(words, "--json") > 0;
  if (words.size() > 1)
    return FailVerb("tune", "show takes one id at most; see hvdrun tune --help");
  if (words.empty()) {
    const Results results = ResultsIn(memory);
    if (json) return PrintText(TuningJson(results));
    if (!results.empty()) return PrintText(TuningTable(results, WallSeconds()));
    return PrintText("nothing is remembered in " + memory.folder() +
                     "; hvdrun --autotune remembers on the host of rank 0\n");
  }
  const Result<Results::value_type> chosen = Chosen(memory, words[0]);
  if (!chosen.ok()) return FailVerb("tune", chosen.status().message());
  return PrintText(json ? TuningJson({*chosen}) : TuningDetails(chosen->first, chosen->second));
}

int Export(const TuningMemory& memory, const Words& words) {
  if (words.size() > 1)
    return FailVerb("tune", "export takes one id at most; see hvdrun tune --help");
  const Result<Results::value_type> chosen = Chosen(memory, words.empty() ? "" : words[0]);
  if (!chosen.ok()) return FailVerb("tune", chosen.status().message());
  const Result<std::string> yaml = WithValues("", "", ConfigOf(chosen->second));
  if (!yaml.ok()) return FailVerb("tune", yaml.status().message());
  return PrintText(ConfigHead(chosen->first, chosen->second) + *yaml);
}

// The text of a file; empty if it does not exist.
Result<std::string> TextIn(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return std::string();
  Result<std::string> text = ReadFileWithin(path, {});
  if (!text.ok()) return InvalidArgument(path + " " + text.status().message());
  return text;
}

int Apply(const TuningMemory& memory, const Words& words) {
  if (words.empty() || words.size() > 2)
    return FailVerb("tune", "apply takes an id and a file; see hvdrun tune --help");
  const std::string& path = words.back();
  const Result<Results::value_type> chosen = Chosen(memory, words.size() > 1 ? words[0] : "");
  if (!chosen.ok()) return FailVerb("tune", chosen.status().message());
  const Result<std::string> text = TextIn(path);
  if (!text.ok()) return FailVerb("tune", text.status().message());
  const Result<std::string> yaml = WithValues(*text, path, ConfigOf(chosen->second));
  if (!yaml.ok()) return FailVerb("tune", yaml.status().message());
  if (Status written = WriteWholeFile(path, *yaml); !written.ok())
    return FailVerb("tune", written.message());
  return PrintText("hvdrun tune: " + FlagsOf(chosen->second.values) + " is in " + path +
                   " now; use it with --config-file " + path + "\n");
}

int Forget(const TuningMemory& memory, const Words& words) {
  if (words.size() != 1)
    return FailVerb("tune", "forget takes one id, or --all; see hvdrun tune --help");
  Words ids;
  if (words[0] == "--all") {
    for (const auto& [id, found] : ResultsIn(memory)) ids.push_back(id);
  } else {
    const Result<Results::value_type> chosen = Chosen(memory, words[0]);
    if (!chosen.ok()) return FailVerb("tune", chosen.status().message());
    ids.push_back(chosen->first);
  }
  for (const std::string& id : ids) {
    if (Status forgotten = memory.Forget(id); !forgotten.ok())
      return FailVerb("tune", forgotten.message());
  }
  return 0;
}

struct TuneTool {
  const char* name;
  int (*run)(const TuningMemory& memory, const Words& words);
};
constexpr TuneTool kTuneTools[] = {
    {"show", Show}, {"export", Export}, {"apply", Apply}, {"forget", Forget}};

}  // namespace

int TuneVerb(const std::vector<std::string>& args) {
  if (args.empty()) {
    WriteAll(STDERR_FILENO, VerbHelpText("tune"));
    return kUsageError;
  }
  const TuningMemory memory(TuningFolder(GetEnv));
  for (const TuneTool& tool : kTuneTools) {
    if (args[0] == tool.name) return tool.run(memory, {args.begin() + 1, args.end()});
  }
  return FailVerb("tune", Quoted(args[0]) + " is none of show, export, apply, forget");
}

}  // namespace hvd
