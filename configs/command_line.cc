#include "configs/command_line.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "configs/help_text.h"
#include "configs/message_text.h"
#include "configs/option_parser.h"
#include "configs/settings_table.h"
#include "configs/values.h"
#include "configs/yaml_file.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr std::string_view kExample = "hvdrun -np 2 python train.py";

// One place a value can come from. `said` ends with the separator that a person would write before the value.
struct Source {
  std::string origin;
  std::string said;
  std::string text;
  std::string place = "";  // prefix of messages: "job.yaml:3: "
};

struct ConfigFile {
  std::string name;
  std::map<std::string, YamlValue> values;
};

// A variable that means the opposite of its row is turned around; what is no switch stays as it is, for the message.
std::string FromVariable(const Row& row, const std::string& text) {
  std::optional<bool> on = row.env_inverted ? ParseBool(text) : std::nullopt;
  return on ? (*on ? "off" : "on") : text;
}

// The value as workers read it: switches as 1 and 0, as horovodrun writes them.
std::string ToVariable(const Row& row, const std::string& value) {
  if (row.type != Type::kBool) return value;
  return (value == "on") != row.env_inverted ? "1" : "0";
}

// The sources of one row, strongest first.
std::vector<Source> SourcesOf(const Row& row, const ParsedOptions& options, const EnvLookup& env,
                              const ConfigFile& file) {
  std::vector<Source> sources;
  if (auto flag = options.values.find(row.name); flag != options.values.end()) {
    const auto& [said, last, all] = flag->second;
    if (row.type != Type::kList) {
      sources.push_back({said, said + " ", last});
    } else {
      for (auto text = all.rbegin(); text != all.rend(); ++text) {
        sources.push_back({said, said + " ", *text});
      }
    }
  }
  if (!row.env.empty()) {
    std::string name(row.env);
    std::optional<std::string> value = env(name.c_str());
    if (value && !value->empty()) sources.push_back({name, name + "=", FromVariable(row, *value)});
  }
  if (auto key = file.values.find(std::string(row.yaml)); key != file.values.end()) {
    std::string place = file.name + ":" + std::to_string(key->second.line);
    std::string said = std::string(row.yaml) + ": ";
    sources.push_back({place, said, key->second.text, place + ": "});
  }
  if (!row.default_text.empty()) {
    sources.push_back(
        {"default", std::string(row.flags.front()) + " ", std::string(row.default_text)});
  }
  return sources;
}

// Stores the strongest value of the row. Every origin is checked, so that a wrong one never hides behind a stronger one.
Result<SettingOrigin> ResolveRow(const Row& row, const std::vector<Source>& sources,
                                 Settings& settings) {
  SettingOrigin resolved{.name = row.name, .value = "", .origin = "default"};
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    Settings before = settings;
    Result<std::string> value = StoreValue(row, source->said, source->text, settings);
    if (!value.ok()) return InvalidArgument(source->place + value.status().message());
    if (row.zero_means_unset && *value == "0") {
      settings = std::move(before);
    } else {
      resolved.value = *value;
      resolved.origin = source->origin;
    }
  }
  return resolved;
}

Result<ConfigFile> LoadConfigFile(const ParsedOptions& options, const FileReader& read_file) {
  ConfigFile file;
  auto flag = options.values.find("config-file");
  if (flag == options.values.end()) return file;
  Result<std::string> text = read_file(flag->second.text);
  if (!text.ok()) return text.status();
  file.name = Printable(flag->second.text, kMaxShownPath);
  Result<std::map<std::string, YamlValue>> values = ParseYaml(*text, file.name);
  if (!values.ok()) return values.status();
  file.values = std::move(*values);
  return file;
}

std::string UnknownKeyWarning(const ConfigFile& file, const std::string& key, int line,
                              const std::vector<std::string_view>& known) {
  std::string warning = file.name + ":" + std::to_string(line) + ": " + Printable(key) +
                        " is not a setting and has no effect";
  std::string_view nearest = NearestOf(key, known);
  return nearest.empty() ? warning : warning + "; did you mean " + std::string(nearest) + "?";
}

// Unknown keys one by one; keys whose feature is still to come in one line.
std::vector<std::string> WarnAboutKeys(const ConfigFile& file) {
  std::vector<std::string_view> settings;
  std::vector<std::string_view> planned;
  for (const Row& row : SettingRows()) {
    if (!row.yaml.empty()) settings.push_back(row.yaml);
  }
  for (const PlannedFlag& later : PlannedFlags()) {
    if (!later.yaml.empty()) planned.push_back(later.yaml);
  }
  std::vector<std::string_view> known = settings;
  known.insert(known.end(), planned.begin(), planned.end());

  std::vector<std::string> warnings;
  std::string without_effect;
  for (const auto& [key, value] : file.values) {
    auto is_in = [&key = key](const auto& list) {
      return std::find(list.begin(), list.end(), key) != list.end();
    };
    if (is_in(settings)) continue;
    if (is_in(planned)) {
      without_effect += (without_effect.empty() ? "" : ", ") + key;
    } else {
      warnings.push_back(UnknownKeyWarning(file, key, value.line, known));
    }
  }
  if (!without_effect.empty()) {
    warnings.push_back(file.name + ": no effect yet, still to come: " + without_effect);
  }
  return warnings;
}

// Who runs inside a scheduler's allocation may expect its size to be taken from there.
std::string AboutAllocation(const EnvLookup& env) {
  constexpr std::pair<const char*, const char*> kSchedulers[] = {
      {"LSB_JOBID", "LSF"}, {"SLURM_JOB_ID", "Slurm"}, {"PBS_JOBID", "PBS"}};
  for (const auto& [variable, scheduler] : kSchedulers) {
    if (!env(variable)) continue;
    return "; taking it from the allocation of " + std::string(scheduler) + " (" + variable +
           " is set) is not available yet";
  }
  return "";
}

Status CheckRequired(const std::vector<SettingOrigin>& resolved, const EnvLookup& env) {
  for (const Row& row : SettingRows()) {
    if (!row.required) continue;
    auto found = std::find_if(resolved.begin(), resolved.end(),
                              [&](const SettingOrigin& s) { return s.name == row.name; });
    if (found != resolved.end() && !found->value.empty()) continue;
    return InvalidArgument(std::string(row.flags.front()) + " is missing: say " +
                           std::string(row.what) + ", for example " + std::string(kExample) +
                           AboutAllocation(env));
  }
  return Status::Ok();
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

Result<ParsedCommandLine> Resolve(ParsedOptions options, const EnvLookup& env,
                                  const FileReader& read_file, Verb verb) {
  Result<ConfigFile> file = LoadConfigFile(options, read_file);
  if (!file.ok()) return file.status();
  ParsedCommandLine line{.action = options.action, .warnings = WarnAboutKeys(*file)};
  std::vector<SettingOrigin> resolved;
  for (const Row& row : SettingRowsOf(verb)) {
    if (row.type == Type::kAction) continue;
    Result<SettingOrigin> setting =
        ResolveRow(row, SourcesOf(row, options, env, *file), line.settings);
    if (!setting.ok()) return setting.status();
    if (!row.env.empty() && setting->origin != "default") {
      line.settings.worker_environment.push_back(std::string(row.env) + "=" +
                                                 ToVariable(row, setting->value));
    }
    resolved.push_back(std::move(*setting));
  }
  if (line.action == Action::kPrintConfig) {
    line.text = PrintConfigText(resolved);
    return line;
  }
  if (line.action == Action::kCheckBuild) return line;
  if (verb == Verb::kRun) {
    if (Status missing = CheckRequired(resolved, env); !missing.ok()) return missing;
    if (Status missing = CheckCommand(options.command); !missing.ok()) return missing;
  }
  line.command = std::move(options.command);
  return line;
}

}  // namespace

Result<std::string> ReadConfigFile(const std::string& path) {
  std::string shown = "the configuration file " + Quoted(path, kMaxShownPath);
  Result<std::string> text = ReadFileWithin(path, {.bytes = kMaxConfigBytes});
  if (!text.ok())
    return InvalidArgument(shown + " " + text.status().message() + "; name a YAML file");
  return text;
}

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& args,
                                           const EnvLookup& env, const FileReader& read_file,
                                           Verb verb) {
  std::span<const Row> rows = SettingRowsOf(verb);
  Result<ParsedOptions> options = ParseOptions(args, rows, PlannedFlags());
  if (!options.ok()) return options.status();
  if (options->action == Action::kHelp) {
    return ParsedCommandLine{.action = Action::kHelp,
                             .text = verb == Verb::kRun ? HelpText(rows) : DoctorHelpText(rows)};
  }
  if (options->action == Action::kVersion) {
    return ParsedCommandLine{.action = Action::kVersion, .text = HVD_VERSION "\n"};
  }
  return Resolve(std::move(*options), env, read_file, verb);
}

}  // namespace hvd
