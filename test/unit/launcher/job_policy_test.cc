#include "launcher/job/policy/job_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/command_line.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// By the words of a command line.
Result<JobPolicy> PolicyByWords(std::vector<std::string> words) {
  words.insert(words.end(), {"--", "a"});
  const Result<ParsedCommandLine> line =
      ParseCommandLine(words, [](const char*) { return std::optional<std::string>(); });
  if (!line.ok()) return line.status();
  return PolicyOf(line->settings);
}

struct Ranks {
  uint32_t min_np, np, max_np;
  bool operator==(const Ranks&) const = default;
};

TEST(JobPolicy, HasTheNumbersOfRanks) {
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
    const Result<JobPolicy> policy = PolicyByWords(c.words);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    EXPECT_EQ(policy->outlives_losses, c.elastic) << testing::PrintToString(c.words);
    EXPECT_TRUE((Ranks{policy->min_np, policy->np, policy->max_np} == c.ranks))
        << testing::PrintToString(c.words);
  }
}

// What the machines read.
TEST(JobPolicy, SaysWhatHappens) {
  struct Case {
    std::vector<std::string> words;
    bool finds_hosts, ranks_change, outlives_losses, stops_at_commit, serves_while_ending;
    bool measures_training, limits_waits;
    uint32_t most_workers;
    int64_t commit_bytes;
  };
  const Case fixed = {{}, false, false, false, false, true, false, false, 4, 0};
  const Case elastic = {{}, true, true, true, true, false, true, true, 4, 0};
  Case cases[] = {fixed, fixed, elastic, elastic, elastic, elastic, elastic, elastic};
  cases[1].words = {"--keep-commits", "1M", "--spares", "2", "--max-np", "8"};
  cases[2].words = {"--elastic"};
  cases[3].words = {"--min-np", "4"};  // as many as there may be: what happens is the same
  cases[4].words = {"--host-discovery-script", "./hosts.sh"};
  cases[5].words = {"--max-restarts", "3"};
  cases[6].words = {"--min-np", "2", "--max-np", "8", "--spares", "2"};
  cases[6].most_workers = 10;
  cases[7].words = {"--elastic", "--keep-commits", "1M"};
  cases[7].commit_bytes = 1 << 20;
  for (Case& c : cases) {
    c.words.insert(c.words.begin(), {"-np", "4"});
    const std::string words = testing::PrintToString(c.words);
    const Result<JobPolicy> policy = PolicyByWords(c.words);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    EXPECT_EQ(policy->finds_hosts, c.finds_hosts) << words;
    EXPECT_EQ(policy->ranks_change, c.ranks_change) << words;
    EXPECT_EQ(policy->outlives_losses, c.outlives_losses) << words;
    EXPECT_EQ(policy->stops_at_commit, c.stops_at_commit) << words;
    EXPECT_EQ(policy->serves_while_ending, c.serves_while_ending) << words;
    EXPECT_EQ(policy->measures_training, c.measures_training) << words;
    EXPECT_EQ(policy->limits_waits(), c.limits_waits) << words;
    EXPECT_EQ(policy->most_workers(), c.most_workers) << words;
    EXPECT_EQ(policy->commit_bytes, c.commit_bytes) << words;
  }
}

TEST(JobPolicy, AJobOfAFixedSizeHasNoBudget) {
  const Result<JobPolicy> policy = PolicyByWords({"-np", "4", "--max-failures", "7"});
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(*policy, FixedPolicy(4));
  EXPECT_EQ(policy->failures, FailureLimit{});
}

TEST(JobPolicy, HasDefaults) {
  const Result<JobPolicy> policy = PolicyByWords({"-np", "2", "--elastic"});
  ASSERT_TRUE(policy.ok());
  JobPolicy expected = ElasticPolicy(2, 2, 2);
  expected.elastic_timeout = expected.init_timeout = 600s;
  expected.failures = {.most = 10, .window = 1h};
  EXPECT_EQ(*policy, expected);
}

TEST(JobPolicy, IsRead) {
  const Result<JobPolicy> policy = PolicyByWords({"-np",
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
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  EXPECT_EQ(policy->elastic_timeout, 2500ms);
  EXPECT_EQ(policy->init_timeout, 7s);
  EXPECT_EQ(policy->reset_limit, 0u);
  EXPECT_EQ(policy->cooldown, (CooldownRange{10s, 100s}));
  EXPECT_EQ(policy->failures, (FailureLimit{3, 5min}));
  EXPECT_EQ(policy->spares, 1u);
  EXPECT_EQ(policy->restart, RestartMode::kInJob);
}

TEST(JobPolicy, ContradictionsAreRefusedInOneSentence) {
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
    const Result<JobPolicy> policy = PolicyByWords(words);
    ASSERT_FALSE(policy.ok()) << testing::PrintToString(c.words);
    EXPECT_EQ(policy.status().code(), Code::kInvalidArgument);
    for (const char* named : c.named) EXPECT_THAT(policy.status().message(), HasSubstr(named));
  }
}

}  // namespace
}  // namespace hvd
