// The key-value table that hosts of a job share through the driver.
#include "launcher/driver/services/kv_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KvServiceTest : public testing::Test {
 protected:
  KvServiceTest() {
    Plan plan;
    plan.hosts = {"a", "b", "c"};  // c has no rank
    plan.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
    tree_.Form(plan, 8);
    service_.Begin(3);
  }

  std::vector<std::string> sent_;  // "host key=value"
  TreeRouter tree_{[this](uint32_t host, const ToAgent& message) {
    const auto& entry = std::get<KeyValue>(message);
    sent_.push_back(std::to_string(host) + " " + entry.key + "=" + entry.value);
  }};
  KvService service_{tree_};
};

TEST_F(KvServiceTest, SendsAnEntryToEveryHostThatAskedForIt) {
  EXPECT_TRUE(service_.Want(0, {3, "k"}).ok());
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_TRUE(service_.Put(1, {3, "k", "v"}).ok());
  EXPECT_THAT(sent_, ElementsAre("0 k=v"));
  EXPECT_TRUE(service_.Want(1, {3, "k"}).ok());
  EXPECT_THAT(sent_, ElementsAre("0 k=v", "1 k=v"));
}

TEST_F(KvServiceTest, DropsWhatBelongsToAnotherGenerationOrAHostWithoutARank) {
  EXPECT_TRUE(service_.IsCurrent(0, 3));
  EXPECT_FALSE(service_.IsCurrent(0, 2));
  EXPECT_FALSE(service_.IsCurrent(2, 3));
  EXPECT_TRUE(service_.Put(0, {2, "k", "old"}).ok());
  EXPECT_TRUE(service_.Put(2, {3, "k", "stranger"}).ok());
  EXPECT_TRUE(service_.Want(2, {3, "k"}).ok());
  EXPECT_TRUE(service_.Want(1, {3, "k"}).ok());
  EXPECT_THAT(sent_, IsEmpty());
}

TEST_F(KvServiceTest, ForgetsTheEntriesOfTheGenerationBefore) {
  EXPECT_TRUE(service_.Put(0, {3, "k", "v"}).ok());
  service_.Begin(4);
  EXPECT_TRUE(service_.Want(1, {4, "k"}).ok());
  EXPECT_THAT(sent_, IsEmpty());
}

TEST_F(KvServiceTest, RefusesAHostThatNamesTooManyKeys) {
  const uint64_t most = tree_.MostKeysOf(0);
  for (uint64_t i = 0; i < most; ++i)
    ASSERT_TRUE(service_.Want(0, {3, "k" + std::to_string(i)}).ok()) << i;
  EXPECT_THAT(service_.Want(0, {3, "one more"}).message(), HasSubstr("more keys"));
  EXPECT_THAT(service_.Put(0, {3, "one more", "v"}).message(), HasSubstr("more keys"));
  EXPECT_TRUE(service_.Want(1, {3, "k0"}).ok()) << "others may go on";
}

}  // namespace
}  // namespace hvd
