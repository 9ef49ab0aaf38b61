#include "configs/help_text.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "configs/values.h"
#include "configs/verb_list.h"
#include "configs/wrapped_text.h"

namespace hvd {
namespace {

constexpr size_t kDocColumn = 28;
constexpr size_t kBriefColumn = 25;  // of hvdrun -h, and of the verbs

// "  term  text", with the text in its column, or below a term that is too long.
std::string Entry(std::string_view term, std::string_view text) {
  const std::string first = "  " + std::string(term);
  if (first.size() + 2 <= kDocColumn) return Wrapped(text, kDocColumn, first);
  // The first line of the term is indented less than the rest.
  return Wrapped(term, 6).erase(0, 4) + Wrapped(text, kDocColumn);
}

std::string FlagColumn(const Row& row) {
  std::string flags;
  for (std::string_view flag : row.flags) flags += (flags.empty() ? "" : ", ") + std::string(flag);
  return flags + Placeholder(row);
}

// Lines such as "1 to 10; default 3", "or HVD_X" and "or key launcher.x".
std::vector<std::string> Facts(const Row& row) {
  if (row.type == Type::kAction) return {};
  std::string range;
  if (row.type != Type::kBool && row.type != Type::kString && row.type != Type::kList) {
    range = AllowedValues(row);
  }
  if (!row.default_text.empty()) {
    range += (range.empty() ? "default " : "; default ") + std::string(row.default_text);
  }
  std::string variable = row.env.empty() ? "" : "or " + std::string(row.env);
  if (row.env_inverted) variable += "=1 for off";
  std::string key = row.yaml.empty() ? "" : "or key " + std::string(row.yaml);
  std::vector<std::string> facts;
  for (const std::string& line : {range, variable, key}) {
    if (!line.empty()) facts.push_back(line);
  }
  return facts;
}

std::string RowText(const Row& row) {
  std::string text = Entry(FlagColumn(row), row.doc);
  for (const std::string& fact : Facts(row)) text += Wrapped(fact, kDocColumn);
  return text;
}

std::string RowTexts(std::span<const Row> rows) {
  std::string text;
  std::string_view section;
  for (const Row& row : ShownRows(rows)) {
    if (row.section != section) text += "\n" + std::string(section = row.section) + "\n";
    text += RowText(row);
  }
  return text;
}

std::string VerbLines() {
  std::string lines;
  for (const VerbRow& row : VerbRows()) {
    const std::string first = "  " + std::string(row.name);
    lines += Wrapped(row.summary, kBriefColumn, first);
  }
  return lines;
}

// The same, with the verbs of detached jobs in one line.
std::string BriefVerbLines() {
  std::string lines, detached;
  for (const VerbRow& row : VerbRows()) {
    const std::string name(row.name);
    if (name == "help") continue;  // the last line has it
    if (row.of_detached) {
      detached += (detached.empty() ? "  " : ", ") + name;
    } else {
      lines += Wrapped(row.summary, kBriefColumn, "  " + name);
    }
  }
  return lines + detached + ": detached jobs\n";
}

std::vector<std::string_view> Sections(std::span<const Row> rows) {
  std::vector<std::string_view> sections;
  for (const Row& row : ShownRows(rows)) {
    if (sections.empty() || sections.back() != row.section) sections.push_back(row.section);
  }
  return sections;
}

// The word that names a section: the first of its title that no other title has.
std::string TopicOf(std::string_view section) {
  std::istringstream words(InLowerCase(section));
  std::string topic;
  for (std::string word; words >> word;) {
    if (word != "what" && word != "over" && word != "hvdrun") return word;
  }
  return topic;
}

// The title that contains the word or is spelt like it.
std::string_view SectionOf(std::string_view topic, std::span<const Row> rows) {
  const std::string wanted = InLowerCase(topic);
  for (std::string_view section : Sections(rows)) {
    if (InLowerCase(section) == wanted || TopicOf(section) == wanted) return section;
  }
  for (std::string_view section : Sections(rows)) {
    std::istringstream words(InLowerCase(section));
    for (std::string word; words >> word;) {
      if (word == wanted && wanted.size() > 3) return section;
    }
  }
  return "";
}

}  // namespace

std::string BriefHelpText(std::span<const Row> rows) {
  std::string text =
      "usage: hvdrun -np N [options] command [arguments]\n"
      "Starts N processes of the command and ends all of them when one fails.\n";
  for (const Row& row : ShownRows(rows)) {
    if (row.brief.empty()) continue;
    const std::string flag = std::string(row.flags.front()) + Placeholder(row);
    text += Wrapped(row.brief, kBriefColumn, "  " + flag);
  }
  return text + BriefVerbLines() +
         "hvdrun --help has all options, hvdrun help VERB those of a verb.\n";
}

std::string HelpText(std::span<const Row> rows) {
  std::string text =
      "usage: hvdrun -np N [options] command [arguments]\n"
      "       hvdrun VERB [arguments]\n" +
      Wrapped(
          "Starts N processes of the command, watches them, and ends all of them when one "
          "fails. The first word that is not an option (or the word after --) starts the "
          "command. A Python script, FILE.py, is run by the environment's python.",
          0) +
      "Example: hvdrun -np 2 python train.py\n\nVerbs\n" + VerbLines() + RowTexts(rows) + "\n" +
      Wrapped("Precedence: default < file < variable < flag; --print-config shows which one won.",
              0) +
      Wrapped(
          "Exit code: that of the first worker that fails; 2 for a usage error, 126 or 127 "
          "when the command cannot be started; man hvdrun has the others.",
          0) +
      Wrapped("One section alone: hvdrun help TOPIC, one of " + HelpTopics() + ".", 0);
  return text;
}

std::string HelpTextOf(std::string_view topic, std::span<const Row> rows) {
  if (topic == "doctor") return DoctorHelpText(SettingRowsOf(Verb::kDoctor));
  if (FindVerb(topic) != nullptr) return VerbHelpText(topic);
  const std::string_view section = SectionOf(topic, rows);
  if (section.empty()) return "";
  std::string text = std::string(section) + "\n";
  for (const Row& row : ShownRows(rows)) {
    if (row.section == section) text += RowText(row);
  }
  return text;
}

std::string HelpTopics() {
  std::string topics;
  for (std::string_view section : Sections(SettingRowsOf(Verb::kRun)))
    topics += (topics.empty() ? "" : ", ") + TopicOf(section);
  return topics;
}

std::string VerbHelpText(std::string_view name) {
  const VerbRow* row = FindVerb(name);
  if (row == nullptr || row->takes_settings) return "";
  std::string text = "usage: hvdrun " + std::string(row->name);
  if (!row->arguments.empty()) text += " " + std::string(row->arguments);
  text += "\n" + Wrapped(row->text, 0);
  for (const VerbEntry& entry : row->entries) text += Entry(entry.term, entry.text);
  return row->end.empty() ? text : text + Wrapped(row->end, 0);
}

std::string BriefDoctorHelpText(std::span<const Row> rows) {
  std::string text = "usage: hvdrun doctor [options] [command [arguments]]\n" +
                     Wrapped(FindVerb("doctor")->text, 0);
  constexpr std::string_view kShown[] = {
      "hosts",    "hostfile",           "ssh-port",   "ssh-identity-file",
      "launcher", "network-interfaces", "port-range", "json"};
  for (const Row& row : ShownRows(rows)) {
    if (std::ranges::find(kShown, row.name) == std::end(kShown)) continue;
    text += Entry(std::string(row.flags.front()) + Placeholder(row),
                  row.brief.empty() ? row.doc : row.brief);
  }
  return text + "hvdrun doctor --help has all options.\n";
}

std::string DoctorHelpText(std::span<const Row> rows) {
  std::vector<Row> shown;
  for (const Row& row : rows) {
    if (row.verbs != For::kRun) shown.push_back(row);
  }
  return "usage: hvdrun doctor [options] [command [arguments]]\n" +
         Wrapped(FindVerb("doctor")->text, 0) +
         Wrapped(
             "Of a command the Python that it names is examined; nothing of it is run. Flags "
             "of a run that say nothing about hosts are accepted and have no effect, so that a "
             "command line of hvdrun can be used as it is. Without -H this machine alone is "
             "examined.",
             0) +
         "Example: hvdrun doctor -H node1,node2 -- python train.py\n" + RowTexts(shown) + "\n" +
         Wrapped(
             "Exit code: 0 when all is well or there are only warnings, 1 when some host "
             "cannot be used, 2 for a usage error.",
             0);
}

std::string PrintConfigText(std::span<const SettingOrigin> settings) {
  size_t name_width = 0;
  size_t value_width = 0;
  for (const SettingOrigin& setting : settings) {
    name_width = std::max(name_width, setting.name.size());
    value_width = std::max(value_width, std::max<size_t>(1, Printable(setting.value).size()));
  }
  std::string text;
  for (const SettingOrigin& setting : settings) {
    std::string value = setting.value.empty() ? "-" : Printable(setting.value);
    text += Padded(std::string(setting.name), name_width) + "  " + Padded(value, value_width) +
            "  " + setting.origin + "\n";
  }
  return text;
}

}  // namespace hvd
