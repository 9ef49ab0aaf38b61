// The settings of the engine from the environment: each variable read, refused or without effect.
#include "runtime/api/engine_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace hvd {
namespace {

using ::testing::HasSubstr;

// None of them is set but by the test.
class EngineOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  static constexpr const char* kNames[] = {"HOROVOD_STALL_CHECK_DISABLE",
                                           "HOROVOD_JOIN_AVERAGE",
                                           "HOROVOD_STALL_CHECK_TIME_SECONDS",
                                           "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                                           "HOROVOD_FUSION_THRESHOLD",
                                           "HOROVOD_CACHE_CAPACITY",
                                           "HOROVOD_CYCLE_TIME",
                                           "HOROVOD_GLOO_TIMEOUT_SECONDS",
                                           "HVD_RING_FROM_KIB",
                                           "HVD_INTER_HOST_PIECE_KIB",
                                           "HVD_INTER_HOST_PIECES",
                                           "HVD_INTER_HOST_STRIPES",
                                           "HVD_HOST_CORES"};
};

TEST_F(EngineOptionsTest, DefaultsWhereNothingIsSet) {
  Result<EngineOptions> options = EngineOptionsFromEnv();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->stall_warning, std::chrono::seconds(60));
  EXPECT_EQ(options->stall_shutdown, Duration(0));
  Result<HostsSettings> hosts = HostsSettingsFromEnv();
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->fusion_bytes, uint64_t{128} << 20);
  EXPECT_EQ(hosts->timeout, std::chrono::seconds(30));
  EXPECT_EQ(hosts->cut, SumCut{});
}

TEST_F(EngineOptionsTest, ReadsWhereTheRingBegins) {
  ASSERT_TRUE(OneHostSettingsFromEnv().ok());
  EXPECT_FALSE(OneHostSettingsFromEnv()->ring_from.has_value());
  ::setenv("HVD_RING_FROM_KIB", "1073741824", 1);
  EXPECT_EQ(OneHostSettingsFromEnv()->ring_from, uint64_t{1} << 40);
  ::setenv("HVD_RING_FROM_KIB", "0", 1);
  EXPECT_EQ(OneHostSettingsFromEnv()->ring_from, 0U);
  ::setenv("HVD_RING_FROM_KIB", "-1", 1);
  const Status status = OneHostSettingsFromEnv().status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("HVD_RING_FROM_KIB"));
}

TEST_F(EngineOptionsTest, ReadsTheStallCheck) {
  ::setenv("HOROVOD_STALL_CHECK_TIME_SECONDS", "7", 1);
  ::setenv("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90", 1);
  Result<EngineOptions> options = EngineOptionsFromEnv();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->stall_warning, std::chrono::seconds(7));
  EXPECT_EQ(options->stall_shutdown, std::chrono::seconds(90));
  ::setenv("HOROVOD_STALL_CHECK_DISABLE", "1", 1);
  options = EngineOptionsFromEnv();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->stall_warning, Duration(0));
  EXPECT_EQ(options->stall_shutdown, Duration(0));
}

TEST_F(EngineOptionsTest, ReadsWhatAnAverageIsDividedByAfterAJoin) {
  EXPECT_FALSE(EngineOptionsFromEnv()->average_of_active);
  ::setenv("HOROVOD_JOIN_AVERAGE", "active", 1);
  EXPECT_TRUE(EngineOptionsFromEnv()->average_of_active);
  ::setenv("HOROVOD_JOIN_AVERAGE", "all", 1);
  EXPECT_FALSE(EngineOptionsFromEnv()->average_of_active);
}

TEST_F(EngineOptionsTest, ReadsWhatSteersTheWorkBetweenHosts) {
  ::setenv("HOROVOD_FUSION_THRESHOLD", "0", 1);
  ::setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", "5", 1);
  ::setenv("HVD_INTER_HOST_PIECE_KIB", "1024", 1);
  ::setenv("HVD_INTER_HOST_PIECES", "4", 1);
  ::setenv("HVD_INTER_HOST_STRIPES", "2", 1);
  Result<HostsSettings> hosts = HostsSettingsFromEnv();
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->fusion_bytes, 0u);
  EXPECT_EQ(hosts->timeout, std::chrono::seconds(5));
  EXPECT_EQ(hosts->cut, (SumCut{1024, 4, 2}));
  ::setenv("HVD_INTER_HOST_PIECES", "65", 1);
  EXPECT_FALSE(HostsSettingsFromEnv().ok()) << "more than a call may have under way";
  ::unsetenv("HVD_INTER_HOST_PIECES");
  ::setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", "0", 1);
  EXPECT_GT(HostsSettingsFromEnv()->timeout, std::chrono::hours(24 * 365)) << "0: none";
}

TEST_F(EngineOptionsTest, AnEmptyVariableIsAnUnsetOne) {
  for (const char* name : kNames) ::setenv(name, "", 1);
  EXPECT_TRUE(EngineOptionsFromEnv().ok());
  EXPECT_TRUE(HostsSettingsFromEnv().ok());
}

TEST_F(EngineOptionsTest, RefusesWhatCannotBeMeantWithNameAndValue) {
  struct Bad {
    const char* name;
    const char* value;
  };
  for (const Bad& bad :
       {Bad{"HOROVOD_STALL_CHECK_DISABLE", "2"}, Bad{"HOROVOD_STALL_CHECK_TIME_SECONDS", "-1"},
        Bad{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1.5"},
        Bad{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "soon"},
        Bad{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "99999999999999999999"},
        Bad{"HOROVOD_JOIN_AVERAGE", "some"}, Bad{"HOROVOD_FUSION_THRESHOLD", "64M"},
        Bad{"HOROVOD_GLOO_TIMEOUT_SECONDS", "30s"}, Bad{"HOROVOD_CACHE_CAPACITY", "-5"},
        Bad{"HOROVOD_CYCLE_TIME", "nan"}, Bad{"HOROVOD_CYCLE_TIME", "-0.1"},
        Bad{"HOROVOD_CYCLE_TIME", "1ms"}}) {
    ::setenv(bad.name, bad.value, 1);
    Result<EngineOptions> options = EngineOptionsFromEnv();
    ASSERT_FALSE(options.ok()) << bad.name << "=" << bad.value;
    EXPECT_EQ(options.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(options.status().message(), HasSubstr(bad.name));
    EXPECT_THAT(options.status().message(), HasSubstr("'" + std::string(bad.value) + "'"));
    ::unsetenv(bad.name);
  }
}

TEST_F(EngineOptionsTest, TakesTheCapacityThatHorovodsRunSets) {
  ::setenv("HOROVOD_CACHE_CAPACITY", "(None,)", 1);
  EXPECT_TRUE(EngineOptionsFromEnv().ok());
  ::setenv("HOROVOD_CACHE_CAPACITY", "(None", 1);
  EXPECT_FALSE(EngineOptionsFromEnv().ok());
}

TEST_F(EngineOptionsTest, TheNumberOfCoresIsTheLaunchersWhereItSaysOne) {
  const uint32_t own = AllowedCores();
  EXPECT_GT(own, 0u);
  ::setenv("HVD_HOST_CORES", "12", 1);
  EXPECT_EQ(AllowedCores(), 12u);
  for (const char* none : {"0", "many"}) {
    ::setenv("HVD_HOST_CORES", none, 1);
    EXPECT_EQ(AllowedCores(), own) << none;
  }
}

}  // namespace
}  // namespace hvd
