#include "configs/setting_sources.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>

#include "configs/horovod_settings.h"
#include "configs/message_text.h"
#include "configs/values.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kPrefix = "HVDRUN_";

// Inverts a variable that means the opposite of its row; any other value stays as it is, for the
// message.
std::string FromVariable(const Row& row, const std::string& text) {
  std::optional<bool> on = row.env_inverted ? ParseBool(text) : std::nullopt;
  return on ? (*on ? "off" : "on") : text;
}

// Adds the unit to a plain number of a row whose unit is not bytes.
std::string WithPlainUnit(const Row& row, const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return plain ? text + std::string(row.plain_unit) : text;
}

void AddFlag(const Row& row, const ParsedOptions& options, std::vector<Source>& sources) {
  const auto flag = options.values.find(row.name);
  if (flag == options.values.end()) return;
  const auto& [typed, last, all] = flag->second;
  if (row.type != Type::kList) {
    sources.push_back({Strength::kFlag, typed, typed + " ", WithPlainUnit(row, last)});
    return;
  }
  for (auto text = all.rbegin(); text != all.rend(); ++text) {
    sources.push_back({Strength::kFlag, typed, typed + " ", *text});
  }
}

void AddVariables(const Row& row, const EnvLookup& env, std::vector<Source>& sources) {
  const std::string launcher = LauncherVariable(row);
  if (const auto value = launcher.empty() ? std::nullopt : env(launcher.c_str());
      value && !value->empty()) {
    sources.push_back({Strength::kVariable, launcher, launcher + "=", WithPlainUnit(row, *value)});
  }
  const std::string name(row.env);
  if (const auto value = name.empty() ? std::nullopt : env(name.c_str());
      value && !value->empty()) {
    sources.push_back({Strength::kVariable, name, name + "=", FromVariable(row, *value)});
  }
}

void AddKey(const Row& row, const ConfigFile& file, std::vector<Source>& sources) {
  if (row.yaml.empty()) return;
  const auto key = file.values.find(std::string(row.yaml));
  if (key == file.values.end()) return;
  const std::string place = Format("{}:{}", file.name, key->second.line);
  sources.push_back({file.strength, place, std::string(row.yaml) + ": ",
                     WithPlainUnit(row, key->second.text), place + ": "});
}

// The strength of the strongest source that has an effect.
Strength StrengthOf(const Row& row, const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    if (!AsksForNothing(row, source.text)) return source.strength;
  }
  return Strength::kDefault;
}

// `prefix` is common to all of them.
std::string WithProposal(const std::string& warning, std::string_view name,
                         std::span<const std::string_view> known, std::string_view prefix = "") {
  const std::string_view nearest = NearestOf(name, known);
  if (nearest.empty()) return warning;
  return warning + "; did you mean " + std::string(prefix) + std::string(nearest) + "?";
}

std::string_view LastPart(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// "--max-np" is "max_np" in a file.
std::string AsKey(std::string_view flag) {
  std::string key(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// The setting whose flag is the last part of `key`; null if there is none.
const Row* RowNamedAs(std::string_view key) {
  for (const Row& row : SettingRows()) {
    const auto is_meant = [key](std::string_view flag) { return AsKey(flag) == LastPart(key); };
    if (!row.hidden && std::ranges::any_of(row.flags, is_meant)) return &row;
  }
  return nullptr;
}

// A common section does not make two keys similar: launcher.timeout is not launcher.stage_timeouts.
std::vector<std::string_view> KeysLike(std::string_view key,
                                       const std::vector<std::string_view>& known) {
  std::vector<std::string_view> like;
  for (std::string_view each : known) {
    const std::string_view last = LastPart(each);
    if (!NearestOf(LastPart(key), {&last, 1}).empty()) like.push_back(each);
  }
  return like;
}

std::string UnknownKeyText(std::string_view key, const std::vector<std::string_view>& known) {
  const std::string unknown = " is not a setting and has no effect";
  const Row* row = RowNamedAs(key);
  if (!row) return WithProposal(unknown, key, KeysLike(key, known));
  if (row->yaml.empty()) return unknown + Format("; set it by {}", row->flags.front());
  return unknown + Format("; did you mean {}?", row->yaml);
}

std::vector<std::string_view> KnownKeys() {
  std::vector<std::string_view> known;
  for (std::span<const Row> rows : {SettingRows(), HorovodRows()}) {
    for (const Row& row : rows) {
      if (!row.yaml.empty()) known.push_back(row.yaml);
    }
  }
  return known;
}

std::vector<std::string> UnknownKeys(const Given& given) {
  std::vector<std::string> unknown;
  const std::vector<std::string_view> known = KnownKeys();
  for (const ConfigFile& file : given.files) {
    for (const auto& [key, value] : file.values) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string typed = Format("{}:{}: {}", file.name, value.line, Printable(key));
      unknown.push_back(typed + UnknownKeyText(key, known));
    }
  }
  return unknown;
}

}  // namespace

std::string Source::Name() const {
  const std::string name = place + typed;
  return name.substr(0, name.find_last_not_of(" =:") + 1);
}

std::string LauncherVariable(const Row& row) {
  if (row.hidden || row.type == Type::kAction || row.type == Type::kList) return "";
  std::string name(kPrefix);
  for (char c : row.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::vector<Source> SourcesOf(const Row& row, const Given& given) {
  std::vector<Source> sources;
  AddFlag(row, given.options, sources);
  AddVariables(row, given.env, sources);
  for (const ConfigFile& file : given.files) AddKey(row, file, sources);
  if (!row.default_text.empty()) {
    std::string_view typed = row.flags.empty() ? row.name : row.flags.front();
    sources.push_back(
        {Strength::kDefault, "default", std::string(typed) + " ", std::string(row.default_text)});
  }
  return sources;
}

std::vector<Source> EffectiveSourcesOf(const Row& row, const Given& given) {
  std::vector<Source> sources = SourcesOf(row, given);
  if (row.group.empty()) return sources;
  Strength strongest = Strength::kDefault;
  for (const Row& other : SettingRows()) {
    if (other.group != row.group || other.name == row.name) continue;
    strongest = std::max(strongest, StrengthOf(other, SourcesOf(other, given)));
  }
  if (StrengthOf(row, sources) >= strongest) return sources;
  std::erase_if(sources,
                [](const Source& source) { return source.strength != Strength::kDefault; });
  return sources;
}

bool AsksForNothing(const Row& row, const std::string& text) {
  if (row.type == Type::kBool) return !ParseBool(text).value_or(false);
  return text == row.default_text;
}

std::string FirstGiven(const std::function<bool(const Row&)>& wanted, const Given& given) {
  for (const Row& row : SettingRows()) {
    if (!wanted(row)) continue;
    const std::vector<Source> sources = EffectiveSourcesOf(row, given);
    if (!sources.empty() && !AsksForNothing(row, sources.front().text))
      return sources.front().Name();
  }
  return "";
}

std::vector<std::string> UnknownNames(const Given& given,
                                      const std::vector<std::string>& variables) {
  std::vector<std::string> unknown = UnknownKeys(given);
  std::vector<std::string> names;
  for (std::span<const Row> rows : {SettingRows(), HorovodRows()}) {
    for (const Row& row : rows) {
      if (std::string name = LauncherVariable(row); !name.empty())
        names.push_back(name.substr(kPrefix.size()));
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (std::string_view variable : variables) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::string_view name = variable.substr(kPrefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string typed = "the variable " + Printable(variable);
    unknown.push_back(
        WithProposal(typed + " is not a setting and has no effect", name, known, kPrefix));
  }
  return unknown;
}

}  // namespace hvd
