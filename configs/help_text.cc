#include "configs/help_text.h"

#include <algorithm>
#include <vector>

#include "configs/message_text.h"
#include "configs/values.h"
#include "configs/verb_list.h"

namespace hvd {
namespace {

constexpr size_t kDocColumn = 30;

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string FlagColumn(const Row& row) {
  std::string flags;
  for (std::string_view flag : row.flags) flags += (flags.empty() ? "" : ", ") + std::string(flag);
  return "  " + flags + Placeholder(row);
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
  std::string indent(kDocColumn, ' ');
  std::string flags = FlagColumn(row);
  std::string text =
      flags.size() + 2 > kDocColumn ? flags + "\n" + indent : Padded(flags, kDocColumn);
  text += std::string(row.doc) + "\n";
  for (const std::string& fact : Facts(row)) text += indent + fact + "\n";
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

// "       hvdrun stop JOB"
std::string VerbUsage(const VerbRow& row) {
  std::string usage = "       hvdrun " + std::string(row.name);
  if (!row.arguments.empty()) usage += " " + std::string(row.arguments);
  return usage;
}

std::string VerbLines() {
  size_t width = 0;
  for (const VerbRow& row : VerbRows()) width = std::max(width, VerbUsage(row).size());
  std::string lines;
  for (const VerbRow& row : VerbRows()) {
    lines += Padded(VerbUsage(row), width + 2) + std::string(row.summary) + "\n";
  }
  return lines;
}

}  // namespace

std::string HelpText(std::span<const Row> rows) {
  std::string text =
      "usage: hvdrun -np N [options] command [arguments]\n" + VerbLines() +
      "Starts N processes of the command, watches them, and ends all of them when one fails.\n"
      "The first word that is not an option (or the word after --) starts the command.\n"
      "Example: hvdrun -np 2 python train.py\n";
  text += RowTexts(rows);
  text +=
      "\nPrecedence: default < file < variable < flag; --print-config shows which one won.\n"
      "Exit code: that of the first worker that fails; 2 for a usage error, 126 or 127 when the\n"
      "command cannot be started.\n";
  return text;
}

std::string DoctorHelpText(std::span<const Row> rows) {
  std::vector<Row> shown;
  for (const Row& row : rows) {
    if (row.verbs != For::kRun) shown.push_back(row);
  }
  return "usage: hvdrun doctor [options] [command [arguments]]\n"
         "Goes the way of a run to all hosts, without a job, and examines them and each pair of\n"
         "them: one report for all, each trouble with what to do. Of a command the Python that it\n"
         "names is examined; nothing of it is run. Flags of a run that say nothing about hosts\n"
         "are taken and have no effect, so that a command line of hvdrun can be used as it is.\n"
         "Without -H this machine alone is examined.\n"
         "Example: hvdrun doctor -H node1,node2 -- python train.py\n" +
         RowTexts(shown) +
         "\nExit code: 0 when all is well or there are only warnings, 1 when some host cannot be\n"
         "used, 2 for a usage error.\n";
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
