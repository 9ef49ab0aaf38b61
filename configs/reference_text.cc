#include "configs/reference_text.h"

#include <sstream>
#include <string_view>
#include <vector>

#include "configs/launcher_words.h"
#include "configs/man_sections.h"
#include "configs/values.h"
#include "configs/verb_list.h"

namespace hvd {
namespace {

using Texts = std::vector<std::string>;

std::string Joined(const Texts& texts, std::string_view separator) {
  std::string joined;
  for (const std::string& text : texts) {
    if (!joined.empty()) joined += separator;
    joined += text;
  }
  return joined;
}

std::string Replaced(std::string_view text, char what, std::string_view with) {
  std::string out;
  for (char c : text) {
    if (c == what) {
      out += with;
    } else {
      out += c;
    }
  }
  return out;
}

bool TakesNoValue(const Row& row) { return WordsAfter(row) == 0; }
bool TakesFile(const Row& row) { return row.placeholder == "FILE"; }
bool TakesFolder(const Row& row) { return row.placeholder == "DIR"; }

std::string Range(const Row& row) {
  switch (row.type) {
    case Type::kAction: return "";
    case Type::kString:
    case Type::kList: return row.placeholder.empty() ? "a text" : std::string(row.placeholder);
    default: return AllowedValues(row);
  }
}

// ---- the manual page

std::string Troff(std::string_view text) {
  std::string out = Replaced(Replaced(text, '\\', "\\e"), '-', "\\-");
  if (out.starts_with(".") || out.starts_with("'")) out.insert(0, "\\&");
  return out;
}

std::string ManEntry(const Row& row) {
  Texts flags;
  for (std::string_view flag : row.flags) flags.push_back("\\fB" + Troff(flag) + "\\fR");
  std::string entry = ".TP\n" + Joined(flags, ", ");
  std::string value = Placeholder(row);
  if (!value.empty()) entry += " \\fI" + Troff(std::string_view(value).substr(1)) + "\\fR";
  entry += "\n" + Troff(row.doc) + ".\n";
  Texts facts;
  bool has_range = !TakesNoValue(row) && row.type != Type::kString && row.type != Type::kList;
  if (has_range) facts.push_back("Allowed: " + Range(row) + ".");
  if (!row.default_text.empty()) facts.push_back("Default: " + std::string(row.default_text) + ".");
  if (!row.env.empty()) {
    std::string inverted = row.env_inverted ? " (1 means off)" : "";
    facts.push_back("Variable: " + std::string(row.env) + inverted + ".");
  }
  if (!row.yaml.empty()) facts.push_back("Key: " + std::string(row.yaml) + ".");
  if (!facts.empty()) entry += Troff(Joined(facts, " ")) + "\n";
  return entry;
}

constexpr std::string_view kManName =
    ".SH NAME\n"
    "hvdrun, horovodrun \\- start distributed training and keep it alive\n"
    ".SH SYNOPSIS\n"
    "\\fBhvdrun\\fR \\fB\\-np\\fR \\fIN\\fR [\\fIoptions\\fR] \\fIcommand\\fR "
    "[\\fIarguments\\fR]\n";

constexpr std::string_view kManDescription =
    ".SH DESCRIPTION\n"
    "Starts \\fIN\\fR processes of the command, watches them, and ends all of them when one "
    "fails.\n"
    "The first word that is not an option, or the word after \\fB\\-\\-\\fR, starts the command; "
    "what\n"
    "follows it is handed over unchanged. A Python script, \\fIFILE.py\\fR, is run by the\n"
    "python of the environment, unless it has a #! line of its own and may be executed. An\n"
    "option may be shortened as long as it is clear which one is meant. \\fBhorovodrun\\fR is the\n"
    "same program. To run a program that is named like a verb, give an option first.\n";

// What each verb does, and its options.
std::string ManVerbs() {
  std::string text = ".SH VERBS\n";
  for (const VerbRow& verb : VerbRows()) {
    text += ".SS hvdrun " + Troff(verb.name) + " " + Troff(verb.arguments) + "\n" +
            Troff(verb.text) + "\n";
    for (const VerbEntry& entry : verb.entries)
      text += ".TP\n\\fB" + Troff(entry.term) + "\\fR\n" + Troff(entry.text) + ".\n";
    if (!verb.end.empty()) text += ".PP\n" + Troff(verb.end) + "\n";
    if (verb.takes_settings)
      text += "It takes the options about hosts; hvdrun " + std::string(verb.name) +
              " \\-\\-help lists them.\n";
  }
  return text;
}

std::string ManHead() {
  std::string text(kManName);
  for (const VerbRow& verb : VerbRows()) {
    text += ".br\n\\fBhvdrun " + Troff(verb.name) + "\\fR";
    text += verb.arguments.empty() ? "\n" : " " + Troff(verb.arguments) + "\n";
  }
  return text + std::string(kManDescription) + ManVerbs();
}

constexpr std::string_view kManTail =
    ".SH PRECEDENCE\n"
    "Default, then configuration file, then variable, then flag: the last one wins.\n"
    "\\fB\\-\\-print\\-config\\fR shows every value and where it came from.\n"
    ".SH EXAMPLES\n"
    ".nf\n"
    "hvdrun \\-np 4 python train.py\n"
    "hvdrun \\-np 16 \\-H node1:8,node2:8 python train.py\n"
    "hvdrun doctor \\-H node1,node2\n"
    ".fi\n";

std::string ManEntries(std::span<const ManRow> rows) {
  std::string text;
  for (const ManRow& row : rows) {
    text += ".TP\n\\fB" + Troff(row.term) + "\\fR\n" + Troff(row.text) + "\n";
  }
  return text;
}

// The variables of the settings, then those that belong to no setting.
std::string ManEnvironment(std::span<const Row> rows) {
  std::string text = ".SH ENVIRONMENT\n";
  for (const Row& row : rows) {
    if (row.env.empty()) continue;
    const std::string meaning = row.env_inverted ? "1 means " : "The same as ";
    const std::string flag =
        row.env_inverted ? "--no-" + std::string(row.name) : std::string(row.flags.front());
    text += ".TP\n\\fB" + Troff(row.env) + "\\fR\n" + meaning + Troff(flag) + ".\n";
  }
  return text + ManEntries(EnvironmentRows());
}

// ---- the shells

// Escapes text inside single quotes of fish.
std::string InQuotes(std::string_view text) {
  return "'" + Replaced(Replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

std::string WordsOf(const Row& row) {
  std::string words;
  for (std::string_view choice : row.choices)
    words += (words.empty() ? "" : " ") + std::string(choice);
  return words;
}

std::string Pattern(const Row& row) {
  Texts flags;
  for (std::string_view flag : row.flags) {
    if (!flag.starts_with("--no-")) flags.emplace_back(flag);
  }
  return Joined(flags, "|");
}

constexpr std::string_view kBashHelpers =
    R"(# _hvdrun_offer WORD OPTIONS: offers what compgen finds; a name with a blank stays one word.
_hvdrun_offer() {
  local word="$1"
  shift
  mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
}
_hvdrun_jobs() {
  "${COMP_WORDS[0]}" ps 2>/dev/null | while read -r job _; do
    [[ $job != @(JOB|NAME|) ]] && printf '%s ' "$job"
  done
}
)";

// bash splits --flag=value into three words unless COMP_WORDBREAKS says otherwise.
constexpr std::string_view kBashWord =
    R"(  local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" i=1
  COMPREPLY=()
  if [[ $word == = ]]; then
    word=""
  elif [[ $previous == = ]] && ((COMP_CWORD > 2)); then
    previous="${COMP_WORDS[COMP_CWORD-2]}"
  fi
)";

// "case $previous in" of the bash completion: the values that may follow the flag.
std::string BashCase(const Row& row) {
  if (TakesNoValue(row)) return "";
  std::string then = ":";
  if (row.type == Type::kEnum) then = "_hvdrun_offer \"$word\" -W '" + WordsOf(row) + "'";
  if (TakesFile(row)) then = "_hvdrun_offer \"$word\" -f";
  if (TakesFolder(row)) then = "_hvdrun_offer \"$word\" -d";
  return "    " + Pattern(row) + ") " + then + "; return ;;\n";
}

// What may follow each verb: options, jobs and files.
std::string BashVerbs() {
  std::string cases;
  for (const VerbRow& verb : VerbRows()) {
    if (verb.takes_settings) continue;
    std::string words = WordsOf(verb);
    if (verb.name == "help") words = VerbNames();
    words = words.empty() ? "--help" : "--help " + words;
    const std::string jobs = verb.takes_job ? " $(_hvdrun_jobs)" : "";
    cases += "    " + std::string(verb.name) + ") _hvdrun_offer \"$word\"" +
             (verb.takes_file ? " -f" : "") + " -W \"" + words + jobs + "\"; return ;;\n";
  }
  return cases;
}

// Names of verbs for which `wanted` holds, "dump|stop|top".
std::string VerbsThat(bool VerbRow::*wanted) {
  Texts names;
  for (const VerbRow& verb : VerbRows()) {
    if (verb.*wanted) names.emplace_back(verb.name);
  }
  return Joined(names, "|");
}

// Escapes text inside [...] and after : of a zsh specification.
std::string ZshText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return Replaced(out, '\'', "'\\''");
}

std::string ZshValue(const Row& row) {
  if (TakesNoValue(row)) return "";
  std::string value = ":" + ZshText(row.what) + ":";
  if (row.type == Type::kEnum) value += "(" + WordsOf(row) + ")";
  if (TakesFile(row)) value += "_files";
  if (TakesFolder(row)) value += "_files -/";
  return WordsAfter(row) == 2 ? value + value : value;
}

std::string FishLine(const Row& row, std::string_view flag) {
  std::string line = "complete -c $command -n __hvdrun_before_command";
  if (flag.starts_with("--")) {
    line += " -l " + std::string(flag.substr(2));
  } else {
    line += (flag.size() == 2 ? " -s " : " -o ") + std::string(flag.substr(1));
  }
  if (!TakesNoValue(row)) line += TakesFile(row) || TakesFolder(row) ? " -r" : " -x";
  if (row.type == Type::kEnum) line += " -a " + InQuotes(WordsOf(row));
  return line + " -d " + InQuotes(row.doc) + "\n";
}

// ---- the settings page

std::string Cell(std::string_view text) { return Replaced(text, '|', "\\|"); }

std::string AsCode(std::string_view text) { return text.empty() ? "" : "`" + Cell(text) + "`"; }

std::string SettingLine(const Row& row) {
  Texts flags;
  for (std::string_view flag : row.flags) flags.push_back(AsCode(flag));
  std::string variable = AsCode(row.env) + (row.env_inverted ? " (inverted)" : "");
  return "| " + Joined(flags, ", ") + " | " + Cell(Range(row)) + " | " + Cell(row.default_text) +
         " | " + variable + " | " + AsCode(row.yaml) + " | " + Cell(row.doc) + " |\n";
}

constexpr std::string_view kPageHead =
    "# Settings\n\n"
    "This page is made from `configs/settings_table.cc`; a test fails when it is stale. To make it "
    "again:\n\n"
    "    build/bin/hvdrun_texts settings > docs/settings.md\n\n"
    "A setting can come from six places; the last one that has it wins: default,\n"
    "`/etc/hvdrun/config.yaml`, `~/.config/hvdrun/config.yaml` (`$XDG_CONFIG_HOME`), the file of\n"
    "`--config-file`, environment variable, flag. Every one of them is checked, also those that "
    "lose.\n"
    "`hvdrun --print-config` shows each value and where it came from.\n\n"
    "- Each setting has a variable of its long flag's name, `HVDRUN_SSH_PORT` for `--ssh-port`; "
    "those\n"
    "  that workers read have a second, named below, which is weaker. A list (`-x`) has none.\n"
    "- The files in `/etc` and `~/.config` are read unless `--no-standing-config` is said. One "
    "that "
    "somebody\n"
    "  else than root and you could have written is ignored, with a warning. Agents on other hosts "
    "read none.\n"
    "- A key, or a variable `HVDRUN_...`, that no setting has is a warning with a proposal; with\n"
    "  `--strict-config` it is an error.\n"
    "- `--flag value` and `--flag=value` mean the same. A flag may be shortened while it stays "
    "clear.\n"
    "- When a flag is given twice the last one counts; `-x` counts every time. A switch and its "
    "opposite\n"
    "  (`--fold --no-fold`), and `-H` with `--hostfile`, exclude each other.\n"
    "- An empty variable counts as unset.\n"
    "- A key with a dot is a key in a section: `launcher.num_proc` is `launcher:`, then "
    "`num_proc:` below it.\n"
    "- A setting that has a variable and was set reaches the workers in that variable.\n";

constexpr std::string_view kHorovodHead =
    "\n## Known from horovodrun\n\n"
    "Settings of horovodrun are understood wherever they are said, so that command lines, files "
    "and\n"
    "profiles that exist keep working ([those of other launchers](launcher-words.md)). Where one "
    "has no effect, a line "
    "of\n"
    "the log says why; one that is refused is a usage error.\n\n"
    "| flags | variable | key | answer |\n|---|---|---|---|\n";

std::string AnswerText(const HorovodSetting& setting) {
  switch (setting.answer) {
    case Answer::kAsIs: return "accepted for compatibility; always so";
    case Answer::kNoEffect: return "no effect: " + Cell(setting.reason);
    case Answer::kRefused: break;
  }
  const std::string except = setting.row.type == Type::kString && !setting.row.default_text.empty()
                                 ? " (but for `" + std::string(setting.row.default_text) + "`)"
                                 : "";
  return "refused" + except + ": " + Cell(setting.reason);
}

constexpr std::string_view kWordsHead =
    "# Options of other launchers\n\n"
    "This page is made from `configs/launcher_words.cc`; a test fails when it is stale. To make it "
    "again:\n\n"
    "    build/bin/hvdrun_texts words > docs/launcher-words.md\n\n"
    "What hvdrun makes of the options of torchrun, mpirun, srun, accelerate and deepspeed. Those "
    "of\n"
    "horovodrun work ([settings.md](settings.md#known-from-horovodrun)), and options that hvdrun "
    "has itself, such as\n"
    "`--nnodes` and `--max-restarts`, are in [settings.md](settings.md); [moving.md](moving.md) "
    "compares whole\n"
    "command lines. `-` and `_` within a word are the same, as are one dash and two in front of a "
    "long one.\n\n"
    "- *the same*: the option of hvdrun that means it.\n"
    "- *accepted*: it makes no difference here.\n"
    "- *no effect*: the job runs, and one line says so.\n"
    "- *refused*: a usage error that says what to type.\n";

std::string WordAnswer(const LauncherWord& word) {
  const std::string text = Cell(word.text);
  switch (word.meaning) {
    case WordMeaning::kAlias:
      return "the same: `" + text + "`" + (word.per_node ? ", where no host is named" : "");
    case WordMeaning::kAlways: return "accepted: " + text;
    case WordMeaning::kNoEffect: return "no effect: " + text;
    case WordMeaning::kRefused: break;
  }
  const std::string except =
      word.harmless.empty() ? "" : " (but for `" + std::string(word.harmless) + "`)";
  return "refused" + except + ": " + text;
}

}  // namespace

std::string LauncherWordsPage() {
  std::string page(kWordsHead);
  for (std::string_view launcher : {"torchrun", "mpirun", "srun", "accelerate", "deepspeed"}) {
    page += "\n## " + std::string(launcher) + "\n\n| option | hvdrun |\n|---|---|\n";
    for (const LauncherWord& word : LauncherWords()) {
      if (word.launchers.find(launcher) == std::string_view::npos) continue;
      const bool mpich = word.launchers.find("MPICH") != std::string_view::npos &&
                         launcher == "mpirun" && !word.word.starts_with("-l");
      page +=
          "| " + AsCode(word.word) + (mpich ? " (MPICH)" : "") + " | " + WordAnswer(word) + " |\n";
    }
  }
  return page;
}

std::string ManPage(std::span<const Row> rows) {
  std::string page = ".TH HVDRUN 1 \"\" \"hvdrun " HVD_VERSION "\"\n" + ManHead();
  std::string_view section;
  for (const Row& row : ShownRows(rows)) {
    if (row.section != section) page += ".SH " + Troff(section = row.section) + "\n";
    page += ManEntry(row);
  }
  page += ManEnvironment(rows);
  return page + ".SH FILES\n" + ManEntries(FileRows()) + ".SH EXIT STATUS\n" +
         ManEntries(ExitStatusRows()) + std::string(kManTail);
}

std::string BashCompletion(std::span<const Row> rows) {
  Texts flags, switches, pairs;
  std::string cases;
  for (const Row& row : ShownRows(rows)) {
    for (std::string_view flag : row.flags) {
      flags.emplace_back(flag);
      if (TakesNoValue(row)) switches.emplace_back(flag);
      if (WordsAfter(row) == 2) pairs.emplace_back(flag);
    }
    cases += BashCase(row);
  }
  return "# bash completion for hvdrun and horovodrun\n" + std::string(kBashHelpers) +
         "_hvdrun() {\n" + std::string(kBashWord) +
         "  if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then\n"
         "    _hvdrun_offer \"$word\" -c -f -W '" +
         VerbNames() +
         "'\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         BashVerbs() +
         "    doctor) i=2 ;;\n"
         "  esac\n"
         "  # After the first word that is not an option comes the user's command: its own "
         "completion.\n"
         "  while ((i < COMP_CWORD)); do\n"
         "    case \"${COMP_WORDS[i]}\" in\n"
         "      --) ((i++)); break ;;\n"
         "      " +
         Joined(switches, "|") +
         "|-*=*) ;;\n"
         "      " +
         Joined(pairs, "|") +
         ") ((i += 2)) ;;\n"
         "      -*) ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)) ;;\n"
         "      *) break ;;\n"
         "    esac\n"
         "    ((i++))\n"
         "  done\n"
         "  if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
         "    _command_offset \"$i\"\n"
         "    return\n"
         "  fi\n"
         "  case \"$previous\" in\n" +
         cases +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    _hvdrun_offer \"$word\" -W '" +
         Joined(flags, " ") +
         "'\n"
         "  else\n"
         "    _hvdrun_offer \"$word\" -c -f\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -o bashdefault -F _hvdrun hvdrun horovodrun\n";
}

// The options and tools of each verb.
std::string ZshVerbs() {
  std::string text = "case $words[2] in\n";
  for (const VerbRow& verb : VerbRows()) {
    if (verb.takes_settings) continue;
    const std::string words = verb.name == "help" ? VerbNames() : WordsOf(verb);
    text += "  " + std::string(verb.name) + ") compadd -- --help" +
            (words.empty() ? "" : " " + words) + (verb.takes_file ? "; _files" : "") +
            "; return ;;\n";
  }
  return text + "esac\n";
}

std::string ZshCompletion(std::span<const Row> rows) {
  std::string text =
      "#compdef hvdrun horovodrun\n"
      "if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
      "  _alternative 'verbs:verb:(" +
      VerbNames() +
      ")' 'commands:command:_command_names -e'\n"
      "  return\n"
      "fi\n"
      "if [[ $words[2] == (" +
      VerbsThat(&VerbRow::takes_job) +
      ") ]] && [[ $words[CURRENT] != -* ]]; then\n"
      "  local -a lines; lines=(${(f)\"$($words[1] ps 2>/dev/null)\"})\n"
      "  compadd -- ${${lines%% *}:#(JOB|NAME)}\n"
      "  return\n"
      "fi\n" +
      ZshVerbs() +
      "[[ $words[2] == doctor ]] && { words[2]=(); (( CURRENT-- )) }\n"
      "_arguments -S \\\n";
  for (const Row& row : ShownRows(rows)) {
    for (std::string_view flag : row.flags) {
      std::string repeat = row.type == Type::kList ? "*" : "";
      // --flag value and --flag=value
      const bool may_have_equals = flag.starts_with("--") && !TakesNoValue(row);
      text += "  '" + repeat + std::string(flag) + (may_have_equals ? "=[" : "[") +
              ZshText(row.doc) + "]" + ZshValue(row) + "' \\\n";
    }
  }
  return text + "  '(-):command:_command_names -e' \\\n  '*::arguments:_normal'\n";
}

// The options and tools of each verb.
std::string FishVerbs() {
  std::string text;
  for (const VerbRow& verb : VerbRows()) {
    if (verb.takes_settings) continue;
    std::istringstream words("--help " + (verb.name == "help" ? VerbNames() : WordsOf(verb)));
    for (std::string word; words >> word;) {
      const std::string offer = word.starts_with("--")  ? " -l " + word.substr(2)
                                : word.starts_with("-") ? " -s " + word.substr(1)
                                                        : " -a " + word;
      text +=
          "  complete -c $command -n '__hvdrun_verb " + std::string(verb.name) + "'" + offer + "\n";
    }
  }
  return text;
}

std::string FishCompletion(std::span<const Row> rows) {
  std::string lines;
  Texts switches, pairs;
  for (const Row& row : ShownRows(rows)) {
    for (std::string_view flag : row.flags) {
      lines += "  " + FishLine(row, flag);
      if (TakesNoValue(row)) switches.emplace_back(flag);
      if (WordsAfter(row) == 2) pairs.emplace_back(flag);
    }
  }
  return "# fish completion for hvdrun and horovodrun\n"
         "function __hvdrun_before_command\n"
         "  set -l words (commandline -opc)[2..-1]\n"
         "  test \"$words[1]\" = doctor; and set -e words[1]\n"
         "  set -l skip 0\n"
         "  for word in $words\n"
         "    if test $skip -gt 0\n"
         "      set skip (math $skip - 1)\n"
         "    else if contains -- $word " +
         Joined(switches, " ") +
         "\n"
         "      continue\n"
         "    else if contains -- $word " +
         Joined(pairs, " ") +
         "\n"
         "      set skip 2\n"
         "    else if string match -q -- '--' $word; or not string match -q -- '-*' $word\n"
         "      return 1\n"
         "    else if not string match -q -- '*=*' $word\n"
         "      set skip 1\n"
         "    end\n"
         "  end\n"
         "  return 0\n"
         "end\n"
         "function __hvdrun_verb\n"
         "  set -l words (commandline -opc)\n"
         "  test (count $words) -gt 1; and contains -- \"$words[2]\" $argv\n"
         "end\n"
         "function __hvdrun_jobs\n"
         "  set -l words (commandline -opc)\n"
         "  $words[1] ps 2>/dev/null | string match -rv '^(JOB|NAME|$)' | string replace -r ' .*' "
         "''\n"
         "end\n"
         "for command in hvdrun horovodrun\n"
         "  complete -c $command -n '__hvdrun_verb " +
         Replaced(VerbsThat(&VerbRow::takes_job), '|', " ") + "' -x -a '(__hvdrun_jobs)'\n" +
         FishVerbs() + "  complete -c $command -n 'test (count (commandline -opc)) -eq 1' -a '" +
         VerbNames() + "'\n" + lines + "end\n";
}

std::string SettingsPage(std::span<const Row> rows, std::span<const HorovodSetting> others) {
  std::string page(kPageHead);
  std::string_view section;
  for (const Row& row : rows) {
    if (row.section != section) {
      page += "\n## " + std::string(section = row.section) +
              "\n\n| flags | values | default | variable | key | |\n|---|---|---|---|---|---|\n";
    }
    page += SettingLine(row);
  }
  page += kHorovodHead;
  for (const HorovodSetting& setting : others) {
    Texts flags;
    for (std::string_view flag : setting.row.flags) flags.push_back(AsCode(flag));
    page += "| " + Joined(flags, ", ") + " | " + AsCode(setting.row.env) + " | " +
            AsCode(setting.row.yaml) + " | " + AnswerText(setting) + " |\n";
  }
  return page;
}

}  // namespace hvd
