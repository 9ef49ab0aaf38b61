// hvdrun trace merge|report|export|tail: the findings in a timeline, and timelines in other forms.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/help_text.h"
#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"
#include "timeline/convert/perfetto_export.h"
#include "timeline/convert/trace_merge.h"
#include "timeline/read/trace_follower.h"
#include "timeline/read/trace_source.h"
#include "timeline/report/analysis.h"
#include "timeline/report/facts_collector.h"
#include "timeline/report/interval_lines.h"
#include "timeline/report/report_output.h"

namespace hvd {
namespace {

constexpr size_t kMostSentence = 500;
constexpr size_t kMostSteps = 100'000;  // of one rank in --json
using Sources = std::vector<std::unique_ptr<TraceSource>>;

int Refuse(const std::string& sentence) {
  return FailVerb("trace", Printable(sentence, kMostSentence));
}

// The arguments of one subcommand.
struct TraceArguments {
  std::vector<std::string> files;
  std::string output, format, page, rank;
  bool json = false, once = false;
};

struct OptionWithValue {
  const char* name;
  std::string TraceArguments::*field;
};
constexpr OptionWithValue kOptions[] = {{"-o", &TraceArguments::output},
                                        {"--output", &TraceArguments::output},
                                        {"--format", &TraceArguments::format},
                                        {"--rank", &TraceArguments::rank},
                                        {"--html", &TraceArguments::page}};
struct Switch {
  const char* name;
  bool TraceArguments::*field;
};
constexpr Switch kSwitches[] = {{"--json", &TraceArguments::json},
                                {"--once", &TraceArguments::once}};

// Parses one option, with its value from `rest` or behind "="; false: it is none.
Result<bool> ParseOption(const std::string& word, std::vector<std::string>* rest,
                         const std::vector<std::string>& known, TraceArguments* arguments) {
  const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
  const std::string name = word.substr(0, equals);
  if (name.size() < 2 || name[0] != '-') return false;
  if (std::find(known.begin(), known.end(), name) == known.end())
    return InvalidArgument(Quoted(name) + " is no option here; see hvdrun trace --help");
  for (const Switch& one : kSwitches) {
    if (name != one.name) continue;
    if (equals != std::string::npos) return InvalidArgument(name + " takes no value");
    return arguments->*one.field = true;
  }
  for (const OptionWithValue& option : kOptions) {
    if (name != option.name) continue;
    if (equals == std::string::npos && rest->empty())
      return InvalidArgument(name + " needs a value behind it");
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      value = rest->front();
      rest->erase(rest->begin());
    }
    if (value.empty()) return InvalidArgument(name + " needs a value that is not empty");
    arguments->*option.field = value;
  }
  return true;
}

Result<TraceArguments> ReadArguments(std::vector<std::string> words,
                                     const std::vector<std::string>& known) {
  TraceArguments arguments;
  bool options = true;
  while (!words.empty()) {
    const std::string word = words.front();
    words.erase(words.begin());
    if (options && word == "--") {
      options = false;
      continue;
    }
    Result<bool> taken = options ? ParseOption(word, &words, known, &arguments) : Result(false);
    if (!taken.ok()) return taken.status();
    if (!*taken) arguments.files.push_back(word);
  }
  return arguments;
}

Status CheckOneFile(const TraceArguments& arguments) {
  if (arguments.files.size() == 1) return Status::Ok();
  return InvalidArgument(Format("name one file, not {}; hvdrun trace merge makes one of several",
                                arguments.files.size()));
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first = {}, second = {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Writes one trace to a file with `work`; prints its summary.
template <typename Work>
int WriteTrace(const TraceArguments& arguments, const Work& work) {
  if (arguments.output.empty()) return Refuse("-o FILE is missing: say where to write the trace");
  for (const std::string& file : arguments.files) {
    if (IsSameFile(file, arguments.output))
      return Refuse(arguments.output + " is read and would be overwritten; write another file");
  }
  Result<std::unique_ptr<OutputFile>> out = OutputFile::Create(arguments.output);
  if (!out.ok()) return Refuse(out.status().message());
  Result<std::string> sentence = work(out->get());
  if (!sentence.ok()) return Refuse(sentence.status().message());
  if (Status finished = (*out)->Finish(); !finished.ok()) {
    VerbLine("trace", Printable(finished.message(), kMostSentence));
    return 1;
  }
  return PrintText(arguments.output + ": " + *sentence + "\n");
}

Result<Sources> OpenAll(const std::vector<std::string>& files) {
  Sources sources;
  for (const std::string& file : files) {
    Result<std::unique_ptr<TraceSource>> source = TraceSource::Open(file);
    if (!source.ok()) return source.status();
    sources.push_back(std::move(*source));
  }
  return sources;
}

// Restricts the source to one rank if one was given.
Status Choose(const TraceArguments& arguments, TraceSource* source) {
  if (arguments.rank.empty()) return Status::Ok();
  if (!source->origin().timeline)
    return InvalidArgument("--rank chooses from a timeline of hvdrun, and " + arguments.files[0] +
                           " is none");
  source->KeepProcess(arguments.rank);
  return Status::Ok();
}

int WriteMerged(const TraceArguments& arguments) {
  if (arguments.files.size() > kMostMergedTraces)
    return Refuse(Format("at most {} traces can be merged at a time; merge some of them first",
                         kMostMergedTraces));
  Result<Sources> sources = OpenAll(arguments.files);
  if (!sources.ok()) return Refuse(sources.status().message());
  if (Status chosen = Choose(arguments, sources->front().get()); !chosen.ok())
    return Refuse(chosen.message());
  return WriteTrace(arguments, [&](OutputFile* out) -> Result<std::string> {
    Result<MergeCounts> counts = MergeTraces(*sources, out->buffer(), [out] {
      out->Written();
      return !out->failed();
    });
    if (!counts.ok()) return counts.status();
    return Counted(counts->events, "event", "events") + " of " +
           Counted(counts->files, "file", "files");
  });
}

int MergeTraceVerb(const std::vector<std::string>& words) {
  Result<TraceArguments> arguments = ReadArguments(words, {"-o", "--output"});
  if (!arguments.ok()) return Refuse(arguments.status().message());
  if (arguments->files.empty())
    return Refuse("name the files to merge: hvdrun trace merge A.json B.json -o OUT.json");
  return WriteMerged(*arguments);
}

int WritePerfetto(const TraceArguments& arguments) {
  Result<std::unique_ptr<TraceSource>> source = TraceSource::Open(arguments.files[0]);
  if (!source.ok()) return Refuse(source.status().message());
  if (Status chosen = Choose(arguments, source->get()); !chosen.ok())
    return Refuse(chosen.message());
  return WriteTrace(arguments, [&](OutputFile* out) -> Result<std::string> {
    PerfettoExport perfetto((*source)->origin(), out->buffer());
    while (const TraceEvent* event = (*source)->Next()) {
      perfetto.Add(*event);
      out->Written();
      if (out->failed()) break;
    }
    if (!(*source)->status().ok()) return (*source)->status();
    return Counted(perfetto.events(), "event", "events") +
           Format(", {} left out that Perfetto's form has no place for here", perfetto.left_out());
  });
}

int ExportTraceVerb(const std::vector<std::string>& words) {
  Result<TraceArguments> arguments = ReadArguments(words, {"-o", "--output", "--format", "--rank"});
  if (!arguments.ok()) return Refuse(arguments.status().message());
  if (Status one = CheckOneFile(*arguments); !one.ok()) return Refuse(one.message());
  const std::string& rank = arguments->rank;
  if (rank.size() > 9 || rank.find_first_not_of("0123456789") != std::string::npos)
    return Refuse("--rank " + rank + " is no rank: a number from 0 on");
  if (arguments->format == "chrome") return WriteMerged(*arguments);
  if (arguments->format == "perfetto") return WritePerfetto(*arguments);
  return Refuse(arguments->format.empty()
                    ? "--format is missing: chrome or perfetto"
                    : "--format " + arguments->format + " is unknown: chrome or perfetto");
}

int ReportTraceVerb(const std::vector<std::string>& words) {
  Result<TraceArguments> arguments = ReadArguments(words, {"--json", "--html"});
  if (!arguments.ok()) return Refuse(arguments.status().message());
  if (Status one = CheckOneFile(*arguments); !one.ok()) return Refuse(one.message());
  Result<std::unique_ptr<TraceSource>> source = TraceSource::Open(arguments->files[0]);
  if (!source.ok()) return Refuse(source.status().message());
  FactsCollector collector;
  while (const TraceEvent* event = (*source)->Next()) collector.Add(*event);
  if (!(*source)->status().ok()) return Refuse((*source)->status().message());
  const Report report = MakeReport(collector.Finish(), arguments->files[0]);
  if (report.ranks.empty())
    return Refuse(arguments->files[0] +
                  " has no rank of a job: a report needs a timeline (hvdrun --timeline FILE), to "
                  "which hvdrun trace merge can add traces of PyTorch's profiler");
  if (!arguments->page.empty()) {
    if (IsSameFile(arguments->files[0], arguments->page))
      return Refuse(arguments->page + " is read and would be overwritten; write another file");
    if (Status written = WriteWholeFile(arguments->page, ReportPage(report)); !written.ok())
      return Refuse(written.message());
  }
  constexpr int kIndent = 2;
  return PrintText(arguments->json ? ReportJson(report, kIndent, kMostSteps) : ReportText(report));
}

// Prints until the timeline is complete, or until Ctrl-C; with --once, the existing part.
int TailTraceVerb(const std::vector<std::string>& words) {
  constexpr int kPauseMs = 200;
  Result<TraceArguments> arguments = ReadArguments(words, {"--once"});
  if (!arguments.ok()) return Refuse(arguments.status().message());
  if (Status one = CheckOneFile(*arguments); !one.ok()) return Refuse(one.message());
  TraceFollower follower(arguments->files[0]);
  IntervalLines lines;
  for (;;) {
    std::string text;
    Status status = follower.Poll([&](const TraceEvent& event) { text += lines.Add(event); });
    const bool last = !status.ok() || follower.closed() || arguments->once;
    if (last) text += lines.Finish();
    if (const int code = text.empty() ? 0 : PrintText(text); code != 0) return code;
    if (!status.ok()) return Refuse(status.message());
    if (last) return 0;
    (void)::poll(nullptr, 0, kPauseMs);
  }
}

struct TraceTool {
  const char* name;
  int (*run)(const std::vector<std::string>& words);
};
constexpr TraceTool kTraceTools[] = {{"export", ExportTraceVerb},
                                     {"merge", MergeTraceVerb},
                                     {"report", ReportTraceVerb},
                                     {"tail", TailTraceVerb}};

}  // namespace

int TraceVerb(const std::vector<std::string>& args) {
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  const auto end = std::find(args.begin(), args.end(), "--");
  if (std::any_of(args.begin(), end, asks)) return PrintText(VerbHelpText("trace"));
  if (args.empty())
    return Refuse("say what to do: merge, report, export or tail; see hvdrun trace --help");
  for (const TraceTool& tool : kTraceTools) {
    if (args[0] == tool.name) return tool.run({args.begin() + 1, args.end()});
  }
  return Refuse(Quoted(args[0]) + " is unknown: merge, report, export or tail");
}

}  // namespace hvd
