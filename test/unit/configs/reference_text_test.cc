// Generated texts name every flag, and the checked-in settings page is not stale. Runs in the root
// of the repository.
#include "configs/reference_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "configs/help_text.h"
#include "configs/man_sections.h"
#include "configs/verb_list.h"

namespace hvd {
namespace {

std::string TroffFlag(std::string_view flag) {
  std::string out;
  for (char c : flag) out += c == '-' ? std::string("\\-") : std::string(1, c);
  return "\\fB" + out + "\\fR";
}

// How fish spells it: -l long, -o old-style, -s letter.
std::string FishFlag(std::string_view flag) {
  if (flag.starts_with("--")) return " -l " + std::string(flag.substr(2)) + " ";
  return (flag.size() == 2 ? " -s " : " -o ") + std::string(flag.substr(1)) + " ";
}

TEST(ReferenceText, ManPageAndCompletionsHaveEveryFlag) {
  std::string man = ManPage(SettingRows());
  std::string bash = BashCompletion(SettingRows());
  std::string zsh = ZshCompletion(SettingRows());
  std::string fish = FishCompletion(SettingRows());
  for (const Row& row : ShownRows(SettingRows())) {
    for (std::string_view flag : row.flags) {
      EXPECT_NE(man.find(TroffFlag(flag)), std::string::npos) << flag;
      EXPECT_NE(bash.find(std::string(flag)), std::string::npos) << flag;
      EXPECT_TRUE(zsh.find(std::string(flag) + "[") != std::string::npos ||
                  zsh.find(std::string(flag) + "=[") != std::string::npos)
          << flag;
      EXPECT_NE(fish.find(FishFlag(flag)), std::string::npos) << flag;
    }
    for (std::string_view choice : row.choices) {
      EXPECT_NE(bash.find(choice), std::string::npos) << choice;
      EXPECT_NE(zsh.find(choice), std::string::npos) << choice;
      EXPECT_NE(fish.find(choice), std::string::npos) << choice;
    }
  }
}

TEST(ReferenceText, SettingsForTestsAreInNoTextButTheSettingsPage) {
  const std::string flag = "hosts-per-machine";
  const std::span<const Row> rows = SettingRows();
  EXPECT_EQ(HelpText(rows).find(flag), std::string::npos);
  EXPECT_EQ(DoctorHelpText(rows).find(flag), std::string::npos);
  EXPECT_EQ(ManPage(rows).find(TroffFlag("--" + flag)), std::string::npos);
  EXPECT_EQ(BashCompletion(rows).find(flag), std::string::npos);
  EXPECT_EQ(ZshCompletion(rows).find(flag), std::string::npos);
  EXPECT_EQ(FishCompletion(rows).find(flag), std::string::npos);
  EXPECT_NE(SettingsPage(rows, {}).find(flag), std::string::npos);
}

TEST(ReferenceText, QuotesAndBracketsOfATextDoNotEndItsShellWord) {
  const Row row{.section = "S",
                .name = "odd",
                .flags = {"--odd"},
                .placeholder = "FILE",
                .what = "an it's: [x]",
                .doc = "it's [so]: odd",
                .target = &Settings::hosts};
  EXPECT_NE(ZshCompletion({&row, 1}).find(
                "'--odd=[it'\\''s \\[so\\]\\: odd]:an it'\\''s\\: \\[x\\]:_files'"),
            std::string::npos);
  EXPECT_NE(FishCompletion({&row, 1}).find("-d 'it\\'s [so]: odd'"), std::string::npos);
  EXPECT_NE(ManPage({&row, 1}).find("\nit's [so]: odd.\n"), std::string::npos);
}

std::string FileText(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ReferenceText, ManPageAndCompletionsHaveEveryVerb) {
  const std::string man = ManPage(SettingRows());
  for (const VerbRow& row : VerbRows()) {
    const std::string name(row.name);
    EXPECT_NE(man.find("\n\\fBhvdrun " + name + "\\fR"), std::string::npos)
        << "synopsis of " << name;
    for (const std::string& shell : {BashCompletion(SettingRows()), ZshCompletion(SettingRows()),
                                     FishCompletion(SettingRows())}) {
      EXPECT_NE(shell.find(name), std::string::npos) << name;
    }
  }
}

TEST(ReferenceText, ManPageHasVariablesFilesAndExitCodes) {
  std::string man = ManPage(SettingRows());
  for (const char* section : {".SH ENVIRONMENT\n", ".SH FILES\n", ".SH EXIT STATUS\n"}) {
    EXPECT_NE(man.find(section), std::string::npos) << section;
  }
  EXPECT_NE(man.find("\\fB124\\fR\nThe limit of \\-\\-timeout was reached."), std::string::npos);
  const std::string environment = man.substr(man.find(".SH ENVIRONMENT\n"));
  for (const Row& row : SettingRows()) {
    EXPECT_NE(environment.find("\\fB" + std::string(row.env)), std::string::npos) << row.env;
  }
}

TEST(ReferenceText, ExitCodesOfTheManPageAreThoseOfTheErrorsPage) {
  const std::string page = FileText("docs/errors.md");
  const size_t begin = page.find("## Signals and exit codes");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::string known;
  for (const ManRow& row : ExitStatusRows()) {
    known += std::string(row.term) + " ";
    if (row.term == "N") continue;
    EXPECT_NE(table.find(row.term), std::string::npos) << row.term;
  }
  // Each number in the last column.
  std::stringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || !line.ends_with(" |")) continue;
    std::string cell = line.substr(0, line.size() - 2);
    cell = cell.substr(cell.rfind('|') + 1);
    for (size_t i = 0; i + 2 < cell.size(); ++i) {
      if (cell[i] == '1' && isdigit(cell[i + 1]) && isdigit(cell[i + 2])) {
        EXPECT_NE(known.find(cell.substr(i, 3)), std::string::npos) << cell;
      }
    }
    // 75 and 79 stand alone.
    const std::string number = cell.substr(std::min(cell.find_first_not_of(' '), cell.size()), 2);
    if (number.size() == 2 && isdigit(number[0]) && isdigit(number[1])) {
      EXPECT_NE(known.find(number), std::string::npos) << cell;
    }
  }
}

TEST(ReferenceText, ManPageAndCompletionsHaveTheOptionsOfVerbs) {
  const std::string man = ManPage(SettingRows());
  const std::string bash = BashCompletion(SettingRows());
  const std::string zsh = ZshCompletion(SettingRows());
  const std::string fish = FishCompletion(SettingRows());
  for (const VerbRow& verb : VerbRows()) {
    const std::string words = WordsOf(verb);
    EXPECT_NE(man.find(".SS hvdrun " + std::string(verb.name)), std::string::npos) << verb.name;
    if (words.empty()) continue;
    EXPECT_NE(bash.find("    " + std::string(verb.name) + ") "), std::string::npos) << verb.name;
    EXPECT_NE(bash.find("--help " + words), std::string::npos) << words;
    EXPECT_NE(zsh.find("--help " + words), std::string::npos) << words;
    EXPECT_NE(fish.find("'__hvdrun_verb " + std::string(verb.name) + "'"), std::string::npos);
  }
  EXPECT_NE(man.find("\\fB\\-\\-after\\-step\\fR"), std::string::npos);
}

TEST(ReferenceText, LauncherWordsPageIsFresh) {
  EXPECT_TRUE(FileText("docs/launcher-words.md") == LauncherWordsPage())
      << "docs/launcher-words.md is stale, run: build/bin/hvdrun_texts words > "
         "docs/launcher-words.md";
}

TEST(ReferenceText, SettingsPageIsFresh) {
  EXPECT_TRUE(FileText("docs/settings.md") == SettingsPage(SettingRows(), HorovodSettings()))
      << "docs/settings.md is stale, run: build/bin/hvdrun_texts settings > docs/settings.md";
}

}  // namespace
}  // namespace hvd
