#include "configs/command_line.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "configs/help_text.h"
#include "configs/horovod_settings.h"
#include "configs/launcher_words.h"
#include "configs/message_text.h"
#include "configs/option_parser.h"
#include "configs/setting_sources.h"
#include "configs/settings_table.h"
#include "configs/values.h"
#include "configs/yaml_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kExample = "hvdrun -np 2 python train.py";

// The value as workers read it: switches as 1 and 0, as horovodrun writes them.
std::string ToVariable(const Row& row, const std::string& value) {
  if (row.type != Type::kBool) return value;
  return (value == "on") != row.env_inverted ? "1" : "0";
}

// The value of a switch as on or off: a variable of stock Horovod may contain 1.
std::string OnOrOff(const Row& row, const std::string& text) {
  if (row.type != Type::kBool) return text;
  return ParseBool(text).value_or(false) ? "on" : "off";
}

// Stores the strongest value of the row. Every origin is checked, so that a wrong one never hides
// behind a stronger one.
Result<SettingOrigin> ResolveRow(const Row& row, const std::vector<Source>& sources,
                                 Settings& settings) {
  SettingOrigin resolved{.name = row.name, .value = "", .origin = "default"};
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    Settings before = settings;
    Result<std::string> value = StoreValue(row, source->typed, source->text, settings);
    if (!value.ok()) return InvalidArgument(source->place + value.status().message());
    if (row.zero_means_unset && *value == "0") {
      settings = std::move(before);
    } else {
      resolved.value = *value;
      resolved.origin = source->origin;
      resolved.strength = source->strength;
    }
  }
  return resolved;
}

Result<ConfigFile> ParseConfigFile(const std::string& path, std::string_view text,
                                   Strength strength) {
  ConfigFile file{.name = Printable(path, kMaxShownPath), .values = {}, .strength = strength};
  Result<std::map<std::string, YamlValue>> values = ParseYaml(text, file.name);
  if (!values.ok()) return values.status();
  file.values = std::move(*values);
  return file;
}

// The strongest text given for this setting, or its default.
std::string StrongestText(std::string_view name, const Given& given) {
  for (const Row& row : SettingRows()) {
    if (row.name != name) continue;
    const std::vector<Source> sources = SourcesOf(row, given);
    return sources.empty() ? "" : sources.front().text;
  }
  return "";
}

// Loads the file of --config-file, then the standing files.
Status LoadConfigFiles(const FileReader& read_file, const StandingSettings& standing,
                       Given& given) {
  if (const std::string path = StrongestText("config-file", given); !path.empty()) {
    const Result<std::string> text = read_file(path);
    if (!text.ok()) return text.status();
    Result<ConfigFile> file = ParseConfigFile(path, *text, Strength::kFile);
    if (!file.ok()) return file.status();
    given.files.push_back(std::move(*file));
  }
  if (!ParseBool(StrongestText("standing-config", given)).value_or(true)) return Status::Ok();
  for (const StandingFile& standing_file : standing.files) {
    Result<ConfigFile> file =
        ParseConfigFile(standing_file.path, standing_file.text, Strength::kStandingFile);
    if (!file.ok()) return file.status();
    given.files.push_back(std::move(*file));
  }
  return Status::Ok();
}

// Chooses what starts the ranks, from the switches or --controller, and refuses settings that do
// not go with it.
Status SettleController(const Given& given, ParsedCommandLine& line) {
  Settings& settings = line.settings;
  const bool gloo = given.options.values.contains("gloo");
  if (gloo) settings.controller = Controller::kGloo;
  if (settings.use_mpi) settings.controller = Controller::kMpi;
  if (settings.use_jsrun) settings.controller = Controller::kJsrun;
  if (settings.tcp) settings.worker_environment.emplace_back("NCCL_IB_DISABLE=1");
  const auto typed = [&](const std::function<bool(const Row&)>& wanted) {
    return FirstGiven(wanted, given);
  };
  if (RankLauncherOf(settings).empty()) {
    const std::string args =
        typed([](const Row& row) { return row.name == "mpi-args" || row.name == "binding-args"; });
    if (!args.empty()) line.warnings.push_back(args + " has no effect without --mpi or --jsrun");
    return Status::Ok();
  }
  const std::string elastic = typed([](const Row& row) { return row.makes_elastic; });
  if (elastic.empty()) return Status::Ok();
  return InvalidArgument(typed([](const Row& row) { return row.group == "controller"; }) + " and " +
                         elastic +
                         " exclude each other: a world over MPI has a fixed size; leave one of "
                         "the two out");
}

// Whether the workers use stock Horovod, which has settings of its own.
bool IsForStock(const Given& given) {
  return ParseBool(StrongestText("stock-horovod", given)).value_or(false);
}

// Of horovodrun, then of other launchers.
std::vector<HorovodSetting> AnsweredSettings() {
  const std::span<const HorovodSetting> own = HorovodSettings(), others = LauncherSettings();
  std::vector<HorovodSetting> all(own.begin(), own.end());
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

struct HorovodAnswers {
  std::vector<std::string> lines;        // for the log
  std::vector<std::string> environment;  // "NAME=value", for workers of stock Horovod
};

// The answers to settings of horovodrun: an error, or lines for the log, one per reason. A setting
// that stock Horovod reads from a variable is passed on to it.
Result<HorovodAnswers> AnswerHorovodSettings(const Given& given) {
  HorovodAnswers answers;
  const bool stock = IsForStock(given);
  std::vector<std::pair<std::string_view, std::vector<std::string>>> by_reason;
  for (const HorovodSetting& setting : AnsweredSettings()) {
    const std::vector<Source> sources = SourcesOf(setting.row, given);
    if (sources.empty()) continue;
    const std::string& value = sources.front().text;
    if (stock && setting.answer != Answer::kRefused && !setting.row.env.empty()) {
      if (sources.front().origin != "default")
        answers.environment.push_back(std::string(setting.row.env) + "=" +
                                      ToVariable(setting.row, OnOrOff(setting.row, value)));
      continue;
    }
    if (AsksForNothing(setting.row, value) || setting.answer == Answer::kAsIs) continue;
    const std::string name = sources.front().Name();
    if (setting.answer == Answer::kRefused)
      return InvalidArgument(RefusalOf(*FindLauncherWord(name), name + " " + Printable(value)));
    auto same = std::find_if(by_reason.begin(), by_reason.end(),
                             [&](const auto& entry) { return entry.first == setting.reason; });
    if (same == by_reason.end()) same = by_reason.insert(same, {setting.reason, {}});
    same->second.push_back(name);
  }
  for (const auto& [reason, names] : by_reason) {
    std::string line;
    for (const std::string& name : names) line += (line.empty() ? "" : ", ") + name;
    line += names.size() == 1 ? " has no effect: " : " have no effect: ";
    answers.lines.push_back(line + std::string(reason));
  }
  return answers;
}

void SetOrigin(std::vector<SettingOrigin>& resolved, std::string_view name, std::string value,
               const std::string& origin) {
  for (SettingOrigin& setting : resolved) {
    if (setting.name != name) continue;
    setting.value = std::move(value);
    setting.origin = origin;
  }
}

bool NamesHosts(const Settings& settings) {
  return !settings.hosts.empty() || !settings.hostfile.empty() ||
         !settings.host_discovery_script.empty() || settings.hosts_per_machine != 1;
}

// Takes hosts, number of processes and access to the hosts from the allocation if they were not
// given.
void UseAllocation(const AllocatedHosts& allocated, Settings& settings,
                   std::vector<SettingOrigin>& resolved) {
  if (!allocated.hosts.empty()) {
    settings.hosts = allocated.hosts;
    settings.allocated_job = allocated.job;
    settings.allocation_command = allocated.command;
    SetOrigin(resolved, "hosts", allocated.hosts, allocated.name);
  }
  if (allocated.least_slots > 0 && settings.min_num_proc == 0) {
    settings.min_num_proc = allocated.least_slots;
    SetOrigin(resolved, "min-np", std::to_string(allocated.least_slots), allocated.name);
  }
  if (settings.num_proc == 0) {
    // Nodes that dial come when they like: an elastic job begins with the fewest that are enough,
    // and takes in the others.
    const bool few = allocated.launcher == RemoteLauncher::kNodes && settings.min_num_proc > 0;
    settings.num_proc = few ? settings.min_num_proc : allocated.slots;
    SetOrigin(resolved, "num-proc", std::to_string(settings.num_proc), allocated.name);
    if (few && settings.max_num_proc == 0) {
      settings.max_num_proc = allocated.slots;
      SetOrigin(resolved, "max-np", std::to_string(allocated.slots), allocated.name);
    }
  }
  if (settings.launcher != RemoteLauncher::kAuto || !settings.rsh_agent.empty()) return;
  if (!allocated.rsh_agent.empty()) {
    settings.rsh_agent = allocated.rsh_agent;
    SetOrigin(resolved, "rsh-agent", allocated.rsh_agent, allocated.name);
  } else if (allocated.launcher != RemoteLauncher::kAuto) {
    settings.launcher = allocated.launcher;
    SetOrigin(resolved, "launcher", NameOf(allocated.launcher), allocated.name);
  }
}

// Checks --nnodes and its companions. With one node the others have no meaning, as in torchrun.
Status CheckNodes(const Given& given, ParsedCommandLine& line) {
  const Settings& settings = line.settings;
  const auto typed = [&](std::string_view name) {
    return FirstGiven([&](const Row& row) { return row.name == name; }, given);
  };
  const bool one = !StartsOnEachNode(settings);
  if (!one && NamesHosts(settings)) {
    return InvalidArgument(typed("nnodes") + " " + Printable(settings.nnodes) +
                           " says that this command starts on each node, and hosts are named "
                           "here: leave one of the two out");
  }
  if (!one && settings.allocation == AllocationUse::kNever) {
    return InvalidArgument(typed("nnodes") + " " + Printable(settings.nnodes) +
                           " and --allocation never exclude each other: leave one of the two out");
  }
  if (one && settings.node_rank > 0) {
    return InvalidArgument(
        Format("{} {} is not the rank of one node: say --nnodes with the number of nodes",
               typed("node-rank"), settings.node_rank));
  }
  if (!one) return Status::Ok();
  std::string names;
  int count = 0;
  for (const char* name : {"master-addr", "master-port"}) {
    if (const std::string word = typed(name); !word.empty())
      names += (count++ == 0 ? "" : ", ") + word;
  }
  if (count > 0) {
    line.warnings.push_back(names + (count == 1 ? " has" : " have") +
                            " no effect on one node: hvdrun sets MASTER_ADDR and MASTER_PORT in "
                            "the ranks; -x MASTER_PORT=29500 sets another");
  }
  return Status::Ok();
}

// `per_node`: the number of processes is per host.
Status ReadAllocation(const AllocationReader& read, bool per_node, ParsedCommandLine& line,
                      std::vector<SettingOrigin>& resolved) {
  Settings& settings = line.settings;
  if (!read || settings.allocation != AllocationUse::kAuto || NamesHosts(settings))
    return Status::Ok();
  Settings asked = settings;
  if (per_node) asked.slots_per_host = settings.num_proc;
  Result<std::optional<AllocatedHosts>> allocated = read(asked);
  if (!allocated.ok()) return allocated.status();
  if (!*allocated) return Status::Ok();
  if (per_node && !(*allocated)->hosts.empty()) {
    settings.slots_per_host = settings.num_proc;
    settings.num_proc = 0;
  }
  UseAllocation(**allocated, settings, resolved);
  line.notes.push_back((*allocated)->text);
  return Status::Ok();
}

// Whether the named hosts determine the number of processes.
bool HostsTell(const Row& row, const Settings& settings) {
  return row.name == "num-proc" && !IsElastic(settings) &&
         (!settings.hosts.empty() || !settings.hostfile.empty());
}

// For `hvdrun run -np 2 train.py`: to hvdrun "run" is the command, followed by its arguments.
std::string BehindCommand(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (word == "-np" || word == "-n" || word == "--num-proc" || word.starts_with("--nproc"))
      return ". " + word + " behind the command " + Quoted(command.front()) +
             " is an argument of it; options of hvdrun stand in front of the command";
  }
  return "";
}

Status CheckRequired(const std::vector<SettingOrigin>& resolved, const Settings& settings) {
  for (const Row& row : SettingRows()) {
    if (!row.required || HostsTell(row, settings)) continue;
    auto found = std::find_if(resolved.begin(), resolved.end(),
                              [&](const SettingOrigin& s) { return s.name == row.name; });
    if (found != resolved.end() && !found->value.empty()) continue;
    return InvalidArgument(std::string(row.flags.front()) + " is missing: say " +
                           std::string(row.what) + ", for example " + std::string(kExample));
  }
  return Status::Ok();
}

// --max-restarts is an alias of two settings.
void UseRestarts(Settings& settings, std::vector<SettingOrigin>& resolved) {
  if (settings.max_restarts == 0) return;
  settings.elastic = true;
  settings.max_failures = std::to_string(settings.max_restarts);
  SetOrigin(resolved, "elastic", "on", "--max-restarts");
  SetOrigin(resolved, "max-failures", settings.max_failures, "--max-restarts");
}

// Environment variables and standing files apply to other jobs, too.
bool IsGivenForThisJob(Strength strength) {
  return strength == Strength::kFlag || strength == Strength::kFile;
}

// Warns about settings of elastic jobs, given by a flag or a key for a job that is not elastic.
std::vector<std::string> WarnAboutElastic(const std::vector<SettingOrigin>& resolved,
                                          const Settings& settings) {
  std::vector<std::string> warnings;
  if (IsElastic(settings)) return warnings;
  for (const Row& row : SettingRows()) {
    if (!row.elastic_only) continue;
    auto setting = std::find_if(resolved.begin(), resolved.end(),
                                [&](const SettingOrigin& s) { return s.name == row.name; });
    if (setting == resolved.end() || !IsGivenForThisJob(setting->strength)) continue;
    warnings.push_back(setting->origin +
                       " has no effect: the job has a fixed size; --elastic, --min-np or "
                       "--host-discovery-script makes it elastic");
  }
  return warnings;
}

// Whether the number is per host, as in torchrun; without named hosts both are the same.
bool CountsPerNode(const ParsedOptions& options) {
  const auto given = options.values.find("num-proc");
  if (given == options.values.end()) return false;
  const LauncherWord* word = FindLauncherWord(given->second.typed);
  return word != nullptr && word->per_node;
}

Status CheckPerNode(const ParsedOptions& options, const Settings& settings) {
  if (!CountsPerNode(options)) return Status::Ok();
  if (settings.hosts.empty() && settings.hostfile.empty() && settings.host_discovery_script.empty())
    return Status::Ok();
  return InvalidArgument(options.values.at("num-proc").typed +
                         " counts the processes of one host, and hosts are named here: say -np "
                         "with the number of all processes, and -H a:4,b:4 for those of each");
}

Status CheckCommand(const std::vector<std::string>& command) {
  if (command.empty()) {
    return InvalidArgument("there is no command to start: put it after the options, for example " +
                           std::string(kExample));
  }
  if (command.front().empty()) {
    return InvalidArgument("the command '' is an empty text: name a program, for example " +
                           std::string(kExample));
  }
  return Status::Ok();
}

// Replaces torchrun's names for a number: --nproc-per-node auto, gpu or cpu.
Status CountPerNode(ParsedOptions& options, const SlotCounter& count) {
  if (!CountsPerNode(options)) return Status::Ok();
  FlagValue& given = options.values.at("num-proc");
  if (given.text != "auto" && given.text != "gpu" && given.text != "cpu") return Status::Ok();
  const uint32_t slots = count ? count(given.text) : 1;
  if (slots == 0) {
    return InvalidArgument(given.typed +
                           " gpu: this machine has no GPU that CUDA_VISIBLE_DEVICES "
                           "leaves; say a number, or " +
                           given.typed + " auto, which counts cores then");
  }
  given.text = std::to_string(slots);
  given.texts = {given.text};
  return Status::Ok();
}

// Unknown keys and variables are a warning, or an error if the user asks for that.
Status CheckNames(const Given& given, const StandingSettings& standing, ParsedCommandLine& line) {
  std::vector<std::string> unknown = UnknownNames(given, standing.variables);
  if (unknown.empty()) return Status::Ok();
  const auto strict = [](const Row& row) { return row.name == "strict-config"; };
  if (const std::string typed = FirstGiven(strict, given); !typed.empty())
    return InvalidArgument(unknown.front() + " (an error because of " + typed + ")");
  for (std::string& warning : unknown) line.warnings.push_back(std::move(warning));
  return Status::Ok();
}

Result<ParsedCommandLine> Resolve(ParsedOptions options, const EnvLookup& env,
                                  const FileReader& read_file, Verb verb,
                                  const AllocationReader& read_allocation,
                                  const StandingSettings& standing) {
  Given given{.options = options, .env = env, .files = {}};
  HVD_RETURN_IF_ERROR(LoadConfigFiles(read_file, standing, given));
  ParsedCommandLine line{.action = options.action, .warnings = standing.warnings};
  HVD_RETURN_IF_ERROR(CheckNames(given, standing, line));
  Result<HorovodAnswers> answers = AnswerHorovodSettings(given);
  if (!answers.ok()) return answers.status();
  line.warnings.insert(line.warnings.end(), answers->lines.begin(), answers->lines.end());
  line.settings.worker_environment = std::move(answers->environment);
  std::vector<SettingOrigin> resolved;
  for (const Row& row : SettingRowsOf(verb)) {
    if (row.type == Type::kAction) continue;
    Result<SettingOrigin> setting = ResolveRow(row, EffectiveSourcesOf(row, given), line.settings);
    if (!setting.ok()) return setting.status();
    if (!row.env.empty() && setting->origin != "default") {
      line.settings.worker_environment.push_back(std::string(row.env) + "=" +
                                                 ToVariable(row, setting->value));
    }
    resolved.push_back(std::move(*setting));
  }
  UseRestarts(line.settings, resolved);
  HVD_RETURN_IF_ERROR(SettleController(given, line));
  if (line.action == Action::kCheckBuild) return line;
  HVD_RETURN_IF_ERROR(CheckNodes(given, line));
  if (verb == Verb::kRun) {
    HVD_RETURN_IF_ERROR(CheckPerNode(options, line.settings));
  }
  HVD_RETURN_IF_ERROR(ReadAllocation(read_allocation, CountsPerNode(options), line, resolved));
  for (std::string& warning : WarnAboutElastic(resolved, line.settings)) {
    line.warnings.push_back(std::move(warning));
  }
  if (line.action == Action::kPrintConfig) {
    line.text = PrintConfigText(resolved);
    line.origins = std::move(resolved);
    return line;
  }
  if (verb == Verb::kRun) {
    if (Status missing = CheckRequired(resolved, line.settings); !missing.ok()) {
      std::string also = BehindCommand(options.command);
      // The missing setting may be a misspelt key.
      for (const std::string& warning : line.warnings) also += ". " + warning;
      return InvalidArgument(missing.message() + also);
    }
    if (Status missing = CheckCommand(options.command); !missing.ok()) return missing;
    if (line.settings.json)
      return InvalidArgument(
          "--json is for --print-config, --check-build and hvdrun doctor; a job has "
          "--error-file FILE, and hvdrun top and status have --json");
  }
  line.command = std::move(options.command);
  return line;
}

// An argument of --help that is not a section may be a command.
std::string HelpAskedFor(const ParsedOptions& options, Verb verb, std::span<const Row> rows) {
  if (verb == Verb::kDoctor && options.action == Action::kBriefHelp)
    return BriefDoctorHelpText(rows);
  if (verb == Verb::kDoctor) return DoctorHelpText(rows);
  if (options.action == Action::kBriefHelp) return BriefHelpText(rows);
  const std::string section =
      options.command.empty() ? "" : HelpTextOf(options.command.front(), rows);
  return section.empty() ? HelpText(rows) : section;
}

}  // namespace

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& args,
                                           const EnvLookup& env, const FileReader& read_file,
                                           Verb verb, const AllocationReader& read_allocation,
                                           const SlotCounter& count_slots,
                                           const StandingSettings& standing) {
  std::span<const Row> rows = SettingRowsOf(verb);
  std::vector<Row> understood(rows.begin(), rows.end());
  understood.insert(understood.end(), HorovodRows().begin(), HorovodRows().end());
  Result<ParsedOptions> options = ParseOptions(args, understood);
  if (!options.ok()) return options.status();
  HVD_RETURN_IF_ERROR(CountPerNode(*options, count_slots));
  if (options->action == Action::kBriefHelp || options->action == Action::kHelp) {
    return ParsedCommandLine{.action = options->action, .text = HelpAskedFor(*options, verb, rows)};
  }
  if (options->action == Action::kVersion) {
    return ParsedCommandLine{.action = Action::kVersion, .text = "hvdrun " HVD_VERSION "\n"};
  }
  return Resolve(std::move(*options), env, read_file, verb, read_allocation, standing);
}

}  // namespace hvd
