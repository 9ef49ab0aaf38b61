#include "launcher/tuning/tuning_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

RememberedTuning FoundAt(int64_t at) {
  return {.of = {{4, 4, 8}, "A CPU", "", "0.1.0", 1},
          .values = {{"chunk_kib", 512}, {"wait_spins", 1650}, {"an_axis_of_later", 3}},
          .gained = true,
          .gain = 0.062,
          .gain_low = 0.041,
          .gain_high = 0.084,
          .windows = 24,
          .found_at = at};
}

TEST(TuningText, TheTableHasTheNewestFirst) {
  RememberedTuning none = FoundAt(9000);
  none.gained = false;
  const std::string table = TuningTable({{"aaaa", FoundAt(1000)}, {"bbbb", none}}, 10'000);
  EXPECT_THAT(table, HasSubstr("+6.2 % (+4.1 % to +8.4 %)"));
  EXPECT_THAT(table, HasSubstr("none that could be measured"));
  EXPECT_THAT(table, HasSubstr("--chunk-kib 512 --wait-spins 1650\n"));
  EXPECT_LT(table.find("bbbb"), table.find("aaaa"));
  EXPECT_THAT(table, HasSubstr("16 min"));
  EXPECT_THAT(table, HasSubstr("2 h"));
}

TEST(TuningText, ConfigurationHasTheKeysOfTheSettings) {
  EXPECT_THAT(ConfigOf(FoundAt(0)),
              ElementsAre(Pair("runtime.chunk_kib", "512"), Pair("runtime.wait_spins", "1650")));
  RememberedTuning between_hosts = FoundAt(0);
  between_hosts.values = {{"tensor_fusion_threshold", 64}};
  EXPECT_THAT(ConfigOf(between_hosts), ElementsAre(Pair("params.fusion_threshold_mb", "64")));
}

TEST(TuningText, EveryLineOfTheHeadIsAComment) {
  RememberedTuning found = FoundAt(0);
  found.of.processor = "a\nprocessor: of several lines";
  const std::string head = ConfigHead("aaaa", found);
  for (size_t line = 0; line < head.size(); line = head.find('\n', line) + 1)
    EXPECT_EQ(head[line], '#') << head;
}

TEST(TuningText, JsonIsOneArray) {
  const auto json = nlohmann::json::parse(TuningJson({{"aaaa", FoundAt(5)}}));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["id"], "aaaa");
  EXPECT_EQ(json[0]["settings"]["chunk_kib"], 512);
  EXPECT_THAT(TuningDetails("aaaa", FoundAt(0)), HasSubstr("found     1970-01-01 00:00 UTC\n"));
}

}  // namespace
}  // namespace hvd
