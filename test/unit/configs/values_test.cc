#include "configs/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

const Row kCount{.name = "count",
                 .type = Type::kInt,
                 .min = 1,
                 .max = 1'000'000,
                 .example = "2",
                 .what = "the count",
                 .target = &Settings::num_proc};
const Row kTime{.name = "time",
                .type = Type::kSeconds,
                .min = 0,
                .max = 3600,
                .example = "3",
                .what = "the time",
                .target = &Settings::terminate_grace_seconds};
const Row kSwitch{.name = "switch",
                  .type = Type::kBool,
                  .example = "on",
                  .what = "the switch",
                  .target = &Settings::verbose};
const Row kLevel{
    .name = "level",
    .type = Type::kEnum,
    .choices = {"LOW", "MID", "HIGH"},
    .example = "LOW",
    .what = "the level",
    .target = Chosen(&Settings::log_level, {LogLevel::kTrace, LogLevel::kInfo, LogLevel::kError})};
const Row kRange{.name = "range",
                 .type = Type::kIntRange,
                 .min = 1,
                 .max = 3600,
                 .example = "10 100",
                 .what = "the range",
                 .target = &Settings::blacklist_cooldown_range};

TEST(Values, ReadsWhatPeopleWrite) {
  struct Case {
    const Row* row;
    std::string_view text, stored;
  };
  const Case cases[] = {
      {&kCount, "1", "1"},         {&kCount, "1000000", "1000000"}, {&kTime, "0", "0"},
      {&kTime, "2.5", "2.5"},      {&kTime, "1e2", "100"},          {&kSwitch, "on", "on"},
      {&kSwitch, "TRUE", "on"},    {&kSwitch, "1", "on"},           {&kSwitch, "no", "off"},
      {&kLevel, "mid", "MID"},     {&kLevel, "HIGH", "HIGH"},       {&kRange, "10 100", "10 100"},
      {&kRange, "10,10", "10 10"},
  };
  for (const Case& c : cases) {
    Settings settings;
    Result<std::string> stored = StoreValue(*c.row, "--x ", c.text, settings);
    ASSERT_TRUE(stored.ok()) << c.text << ": " << stored.status().message();
    EXPECT_EQ(*stored, c.stored);
  }
}

TEST(Values, RefusesInOneSentenceThatNamesTheValueAndWhatWorks) {
  struct Case {
    const Row* row;
    std::string text;
    std::string_view message;
  };
  const Case cases[] = {
      {&kCount, "0", "--x 0 is out of range: the count is 1 to 1000000, try --x 2"},
      {&kCount, "-3", "--x -3 is out of range: the count is 1 to 1000000, try --x 2"},
      {&kCount, "99999999999999999999",
       "--x 99999999999999999999 is out of range: the count is 1 to 1000000, try --x 2"},
      {&kCount, "x", "--x x is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kCount, "2.5", "--x 2.5 is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kCount, "0x10", "--x 0x10 is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kCount, " 2", "--x ' 2' is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kCount, "", "--x '' is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kCount, "2\n\x1b",
       "--x '2\\n\\x1b' is not a whole number: the count is 1 to 1000000, try --x 2"},
      {&kTime, "-1", "--x -1 is out of range: the time is 0 to 3600 seconds, try --x 3"},
      {&kTime, "nan",
       "--x nan is not a number of seconds: the time is 0 to 3600 seconds, try --x 3"},
      {&kTime, "inf",
       "--x inf is not a number of seconds: the time is 0 to 3600 seconds, try --x 3"},
      {&kTime, "1e999", "--x 1e999 is out of range: the time is 0 to 3600 seconds, try --x 3"},
      {&kSwitch, "maybe", "--x maybe is not on or off: the switch is on or off, try --x on"},
      {&kLevel, "loud",
       "--x loud is not one of the choices: the level is LOW, MID or HIGH, try --x LOW"},
      {&kRange, "9 8",
       "--x '9 8' is not two whole numbers, the lower one first: the range is two numbers from 1 "
       "to 3600, try --x 10 100"},
      {&kRange, "9",
       "--x 9 is not two whole numbers, the lower one first: the range is two numbers from 1 to "
       "3600, try --x 10 100"},
      {&kRange, "0 8",
       "--x '0 8' is out of range: the range is two numbers from 1 to 3600, try --x 10 100"},
  };
  for (const Case& c : cases) {
    Settings settings;
    Result<std::string> stored = StoreValue(*c.row, "--x ", c.text, settings);
    ASSERT_FALSE(stored.ok()) << c.text;
    EXPECT_EQ(stored.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(stored.status().message(), c.message);
  }
}

TEST(Values, ShortensLongValues) {
  Settings settings;
  Result<std::string> stored = StoreValue(kCount, "-np ", std::string(10'000, '7'), settings);
  ASSERT_FALSE(stored.ok());
  EXPECT_LT(stored.status().message().size(), 200u);
  EXPECT_THAT(stored.status().message(), testing::HasSubstr("(10000 characters)"));
}

}  // namespace
}  // namespace hvd
