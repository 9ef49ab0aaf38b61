// The table itself: rows that contradict each other are found here, not by a user.
#include "configs/settings_table.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

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

TEST(SettingsTable, EveryRowIsDocumented) {
  std::string help = HelpText(SettingRows());
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

TEST(SettingsTable, HelpFitsTheScreen) {
  std::string help = HelpText(SettingRows());
  for (size_t start = 0; start < help.size();) {
    size_t end = help.find('\n', start);
    EXPECT_LE(end - start, 100u) << help.substr(start, end - start);
    start = end + 1;
  }
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
