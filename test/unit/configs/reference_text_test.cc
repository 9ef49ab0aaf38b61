// Generated texts name every flag, and the checked-in settings page is not stale. Runs in the root of the repository.
#include "configs/reference_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

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
  for (const Row& row : SettingRows()) {
    for (std::string_view flag : row.flags) {
      EXPECT_NE(man.find(TroffFlag(flag)), std::string::npos) << flag;
      EXPECT_NE(bash.find(std::string(flag)), std::string::npos) << flag;
      EXPECT_NE(zsh.find(std::string(flag) + "["), std::string::npos) << flag;
      EXPECT_NE(fish.find(FishFlag(flag)), std::string::npos) << flag;
    }
    for (std::string_view choice : row.choices) {
      EXPECT_NE(bash.find(choice), std::string::npos) << choice;
      EXPECT_NE(zsh.find(choice), std::string::npos) << choice;
      EXPECT_NE(fish.find(choice), std::string::npos) << choice;
    }
  }
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
                "'--odd[it'\\''s \\[so\\]\\: odd]:an it'\\''s\\: \\[x\\]:_files'"),
            std::string::npos);
  EXPECT_NE(FishCompletion({&row, 1}).find("-d 'it\\'s [so]: odd'"), std::string::npos);
  EXPECT_NE(ManPage({&row, 1}).find("\nit's [so]: odd.\n"), std::string::npos);
}

TEST(ReferenceText, SettingsPageIsFresh) {
  std::ifstream in("docs/settings.md", std::ios::binary);
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_TRUE(page.str() == SettingsPage(SettingRows(), HorovodSettings()))
      << "docs/settings.md is stale, run: build/bin/hvdrun_texts settings > docs/settings.md";
}

}  // namespace
}  // namespace hvd
