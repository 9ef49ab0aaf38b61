#include "launcher/job/policy/elastic_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/command_line.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// By the words of a command line.
Result<ElasticLimits> LimitsOf(std::vector<std::string> words) {
  words.insert(words.end(), {"--", "a"});
  const Result<ParsedCommandLine> line =
      ParseCommandLine(words, [](const char*) { return std::optional<std::string>(); });
  if (!line.ok()) return line.status();
  return ElasticLimitsOf(line->settings);
}

struct Ranks {
  uint32_t min_np, np, max_np;
  bool operator==(const Ranks&) const = default;
};

TEST(ElasticLimits, AreTheNumbersOfRanks) {
  struct Case {
    std::vector<std::string> words;
    bool elastic;
    Ranks ranks;
  };
  const Case cases[] = {
      {{"-np", "4"}, false, {4, 4, 4}},
      {{"-np", "4", "--max-np", "8"}, false, {4, 4, 4}},
      {{"-np", "4", "--no-elastic"}, false, {4, 4, 4}},
      {{"-np", "4", "--elastic"}, true, {4, 4, 4}},
      {{"-np", "4", "--elastic", "--max-np", "8"}, true, {4, 4, 8}},
      {{"-np", "4", "--min-np", "2"}, true, {2, 4, 4}},
      {{"-np", "4", "--min-num-proc", "2", "--max-num-proc", "8"}, true, {2, 4, 8}},
      {{"-np", "4", "--host-discovery-script", "./hosts.sh"}, true, {4, 4, 4}},
      {{"-np", "4", "--elastic", "--hosts-per-machine", "2"}, true, {4, 4, 4}},
      {{"-np", "4", "--elastic", "-H", "a:4,b:4"}, true, {4, 4, 4}},
  };
  for (const Case& c : cases) {
    const Result<ElasticLimits> limits = LimitsOf(c.words);
    ASSERT_TRUE(limits.ok()) << limits.status().message();
    EXPECT_EQ(limits->elastic, c.elastic) << testing::PrintToString(c.words);
    EXPECT_TRUE((Ranks{limits->min_np, limits->np, limits->max_np} == c.ranks))
        << testing::PrintToString(c.words);
  }
}

TEST(ElasticLimits, AJobOfAFixedSizeHasNoBudget) {
  const Result<ElasticLimits> limits = LimitsOf({"-np", "4", "--max-failures", "7"});
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(*limits, (ElasticLimits{.min_np = 4, .np = 4, .max_np = 4}));
}

TEST(ElasticLimits, HaveDefaults) {
  const Result<ElasticLimits> limits = LimitsOf({"-np", "2", "--elastic"});
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(*limits, (ElasticLimits{.elastic = true,
                                    .min_np = 2,
                                    .np = 2,
                                    .max_np = 2,
                                    .elastic_timeout = 600s,
                                    .init_timeout = 600s,
                                    .failures = {.most = 10, .window = 1h}}));
}

TEST(ElasticLimits, AreRead) {
  const Result<ElasticLimits> limits = LimitsOf({"-np",
                                                 "2",
                                                 "--min-np",
                                                 "2",
                                                 "--elastic",
                                                 "--elastic-timeout",
                                                 "2.5",
                                                 "--init-timeout",
                                                 "7",
                                                 "--reset-limit",
                                                 "0",
                                                 "--blacklist-cooldown-range",
                                                 "10",
                                                 "100",
                                                 "--max-failures",
                                                 "3/5m",
                                                 "--spares",
                                                 "1",
                                                 "--elastic-restart",
                                                 "in-job"});
  ASSERT_TRUE(limits.ok()) << limits.status().message();
  EXPECT_EQ(limits->elastic_timeout, 2500ms);
  EXPECT_EQ(limits->init_timeout, 7s);
  EXPECT_EQ(limits->reset_limit, 0u);
  EXPECT_EQ(limits->cooldown, (CooldownRange{10s, 100s}));
  EXPECT_EQ(limits->failures, (FailureLimit{3, 5min}));
  EXPECT_EQ(limits->spares, 1u);
  EXPECT_EQ(limits->restart, RestartMode::kInJob);
}

TEST(ElasticLimits, ContradictionsAreRefusedInOneSentence) {
  struct Case {
    std::vector<std::string> words;
    std::vector<const char*> named;
  };
  const Case cases[] = {
      {{"--min-np", "5"}, {"--min-np 5 is more than -np 4", "try --min-np 4"}},
      {{"--elastic", "--max-np", "3"}, {"--max-np 3 is less than -np 4", "try --max-np 4"}},
      {{"--max-failures", "many"}, {"--max-failures 'many'"}},
      {{"--elastic", "--max-failures", "1/1y"}, {"--max-failures '1/1y'"}},
      {{"--elastic", "--blacklist-cooldown-range", "100", "10"},
       {"--blacklist-cooldown-range '100 10'", "the lower one first"}},
      {{"--elastic", "--blacklist-cooldown-range", "0", "10"}, {"out of range", "1 to 3600"}},
      {{"--elastic", "--blacklist-cooldown-range", "1", "3601"}, {"out of range", "1 to 3600"}},
      {{"--elastic", "--blacklist-cooldown-range", "10"}, {"needs two values", "'--' follows it"}},
      {{"--host-discovery-script", "a", "-H", "b"}, {"--host-discovery-script and -H exclude"}},
      {{"--host-discovery-script", "a", "--hostfile", "b"}, {"exclude each other"}},
      {{"--reset-limit", "-1"}, {"--reset-limit -1 is out of range"}},
      {{"--min-np", "0"}, {"--min-np 0 is out of range"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> words = {"-np", "4"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const Result<ElasticLimits> limits = LimitsOf(words);
    ASSERT_FALSE(limits.ok()) << testing::PrintToString(c.words);
    EXPECT_EQ(limits.status().code(), Code::kInvalidArgument);
    for (const char* named : c.named) EXPECT_THAT(limits.status().message(), HasSubstr(named));
  }
}

}  // namespace
}  // namespace hvd
