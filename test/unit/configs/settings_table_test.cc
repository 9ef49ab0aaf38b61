// The table itself: rows that contradict each other are found here, not by a user.
#include "configs/settings_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string>
#include <variant>

#include "configs/help_text.h"
#include "configs/horovod_settings.h"
#include "configs/values.h"
#include "configs/verb_list.h"

namespace hvd {
namespace {

TEST(SettingsTable, EveryFlagVariableAndKeyHasOneMeaning) {
  std::set<std::string_view> seen;
  for (std::span<const Row> rows : {SettingRows(), HorovodRows()}) {
    for (const Row& row : rows) {
      for (std::string_view flag : row.flags) EXPECT_TRUE(seen.insert(flag).second) << flag;
      if (!row.env.empty()) {
        EXPECT_TRUE(seen.insert(row.env).second) << row.env;
      }
      if (!row.yaml.empty()) {
        EXPECT_TRUE(seen.insert(row.yaml).second) << row.yaml;
      }
    }
  }
}

TEST(SettingsTable, DefaultsAndExamplesAreAllowed) {
  for (const Row& row : SettingRows()) {
    if (row.type == Type::kAction) continue;
    Settings settings;
    if (!row.default_text.empty()) {
      Result<std::string> stored = StoreValue(row, "", row.default_text, settings);
      ASSERT_TRUE(stored.ok()) << row.name << ": " << stored.status().message();
      if (row.plain_unit.empty()) {  // else the value is in bytes
        EXPECT_EQ(*stored, row.default_text) << row.name;
      }
    }
    EXPECT_TRUE(StoreValue(row, "", row.example, settings).ok()) << row.name;
  }
}

// With one blank for each run of blanks and line breaks.
std::string InOneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

// The settings after this choice of a row.
Settings Choosing(std::string_view name, std::string_view choice) {
  Settings settings;
  const auto row = std::ranges::find(SettingRows(), name, &Row::name);
  EXPECT_TRUE(StoreValue(*row, "", choice, settings).ok()) << name << " " << choice;
  return settings;
}

TEST(SettingsTable, EveryChoiceStandsForItsOwnValue) {
  for (const Row& row : SettingRows()) {
    const auto* chosen = std::get_if<ChoiceTarget>(&row.target);
    if (chosen != nullptr) {
      EXPECT_EQ(chosen->count, row.choices.size()) << row.name;
    }
  }
  EXPECT_EQ(Choosing("ssh-host-keys", "accept-new").ssh_host_keys, HostKeys::kAcceptNew);
  EXPECT_EQ(Choosing("ssh-client", "program").ssh_client, SshClient::kProgram);
  EXPECT_EQ(Choosing("allocation", "never").allocation, AllocationUse::kNever);
  for (auto launcher : {RemoteLauncher::kAuto, RemoteLauncher::kSsh, RemoteLauncher::kSrun,
                        RemoteLauncher::kBlaunch}) {
    EXPECT_EQ(Choosing("launcher", NameOf(launcher)).launcher, launcher);
  }
  EXPECT_EQ(Choosing("bundle", "never").bundle, BundleUse::kNever);
  EXPECT_EQ(Choosing("bundle", "always").bundle, BundleUse::kAlways);
  EXPECT_EQ(Choosing("relay", "never").relay, RelayUse::kNever);
  EXPECT_EQ(Choosing("controller", "mpi").controller, Controller::kMpi);
  EXPECT_EQ(Choosing("controller", "jsrun").controller, Controller::kJsrun);
  EXPECT_EQ(Choosing("elastic-restart", "in-process").elastic_restart, RestartMode::kInProcess);
  EXPECT_EQ(Choosing("elastic-restart", "in-job").elastic_restart, RestartMode::kInJob);
  EXPECT_EQ(Choosing("stdin", "rank0").stdin_to, StdinTo::kRank0);
  EXPECT_EQ(Choosing("stdin", "all").stdin_to, StdinTo::kAll);
  EXPECT_EQ(Choosing("bind-to", "core").bind_to, BindTo::kCore);
  EXPECT_EQ(Choosing("bind-to", "numa").bind_to, BindTo::kNuma);
  EXPECT_EQ(Choosing("bind-to", "gpu").bind_to, BindTo::kGpu);
  EXPECT_EQ(Choosing("gpus", "one").gpus, GpuVisibility::kOne);
  EXPECT_EQ(Choosing("gpus", "near").gpus, GpuVisibility::kNear);
  EXPECT_EQ(Choosing("log-level", "trace").log_level, LogLevel::kTrace);
  EXPECT_EQ(Choosing("log-level", "fatal").log_level, LogLevel::kFatal);
  EXPECT_EQ(Choosing("timeline-keep", "last").timeline_keep, TimelineKeep::kLast);
  EXPECT_EQ(Choosing("color", "always").color, ColorUse::kAlways);
  EXPECT_EQ(Choosing("color", "never").color, ColorUse::kNever);
}

TEST(SettingsTable, EveryRowIsDocumented) {
  const std::string help = InOneLine(HelpText(SettingRows()));
  for (const Row& row : ShownRows(SettingRows())) {
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_NE(help.find(row.doc), std::string::npos) << row.name;
    for (std::string_view flag : row.flags) EXPECT_NE(help.find(flag), std::string::npos) << flag;
    if (row.type != Type::kAction) {
      EXPECT_FALSE(row.what.empty()) << row.name;
    }
    EXPECT_TRUE(row.env.empty() || row.env.starts_with("HOROVOD_") || row.env.starts_with("HVD_"));
  }
}

void ExpectFits(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(SettingsTable, ShortHelpIsOneScreen) {
  for (const std::string& text :
       {BriefHelpText(SettingRowsOf(Verb::kRun)), BriefDoctorHelpText(SettingRows())}) {
    EXPECT_LE(std::ranges::count(text, '\n'), 24) << text;
  }
  for (const VerbRow& row : VerbRows()) {
    if (row.takes_settings) continue;
    const std::string help = VerbHelpText(row.name);
    EXPECT_LE(std::ranges::count(help, '\n'), 24) << help;
  }
}

TEST(SettingsTable, EveryHelpTextFitsTheScreen) {
  ExpectFits(BriefHelpText(SettingRowsOf(Verb::kRun)));
  ExpectFits(HelpText(SettingRowsOf(Verb::kRun)));
  ExpectFits(DoctorHelpText(SettingRows()));
  ExpectFits(BriefDoctorHelpText(SettingRows()));
  for (const VerbRow& row : VerbRows()) {
    const std::string help = HelpTextOf(row.name, SettingRows());
    EXPECT_TRUE(help.starts_with("usage: hvdrun " + std::string(row.name))) << help;
    ExpectFits(help);
  }
}

TEST(SettingsTable, BriefHelpIsOneScreenWithTheVerbs) {
  const std::string help = BriefHelpText(SettingRowsOf(Verb::kRun));
  EXPECT_LE(std::ranges::count(help, '\n'), 24);
  for (const VerbRow& row : VerbRows()) {
    const std::string name(row.name);
    const bool listed = help.find("\n  " + name + " ") != std::string::npos ||
                        (row.of_detached && (help.find("\n  " + name + ",") != std::string::npos ||
                                             help.find(", " + name) != std::string::npos));
    EXPECT_TRUE(listed || name == "help") << row.name;
  }
  for (const char* flag : {"hvdrun help VERB", "-np N", "-H HOSTS", "--elastic", "--timeout"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
}

TEST(SettingsTable, HelpTopicsAreSectionsAndVerbs) {
  const std::span<const Row> rows = SettingRowsOf(Verb::kRun);
  std::istringstream topics(HelpTopics());
  size_t all = 0;
  for (std::string topic; topics >> topic; ++all) {
    if (topic.ends_with(',')) topic.pop_back();
    EXPECT_NE(HelpTextOf(topic, rows), "") << topic;
  }
  EXPECT_GE(all, 9u);
  const std::string hosts = HelpTextOf("Hosts", rows);
  EXPECT_NE(hosts.find("--hostfile"), std::string::npos);
  EXPECT_EQ(hosts.find("--timeline"), std::string::npos);
  EXPECT_EQ(HelpTextOf("nonsense", rows), "");
  EXPECT_EQ(NearestVerb("dcotor"), "doctor");
  EXPECT_EQ(NearestVerb("pss"), "ps");
  EXPECT_EQ(NearestVerb("python"), "");
  EXPECT_EQ(NearestVerb("abc"), "");
}

TEST(SettingsTable, WhatAVerbDoesStandsApartFromItsArguments) {
  const std::string help = HelpText(SettingRows());
  std::set<size_t> columns;
  for (const VerbRow& row : VerbRows()) {
    const size_t summary = help.find("  " + std::string(row.summary) + "\n");
    ASSERT_NE(summary, std::string::npos) << row.name;
    columns.insert(summary - help.rfind('\n', summary));
  }
  EXPECT_EQ(columns.size(), 1u);
}

TEST(SettingsTable, PrintConfigHasAlignedColumns) {
  EXPECT_EQ(PrintConfigText(std::vector<SettingOrigin>{{"a", "1", "default"}, {"long", "", "-np"}}),
            "a     1  default\n"
            "long  -  -np\n");
}

}  // namespace
}  // namespace hvd
