#include "launcher/wire/kv_table.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(KvTable, WhoWaitedIsNamedOnce) {
  KvTable entries;
  entries.Begin(1);
  EXPECT_EQ(entries.Find("k"), nullptr);
  EXPECT_TRUE(entries.Await(3, "k"));
  EXPECT_FALSE(entries.Await(1, "k"));
  EXPECT_FALSE(entries.Await(3, "k"));
  EXPECT_TRUE(entries.Await(3, "other"));
  EXPECT_EQ(entries.Put("k", "v"), (std::set<uint32_t>{1, 3}));
  EXPECT_EQ(*entries.Find("k"), "v");
  EXPECT_TRUE(entries.Put("k", "w").empty());
}

TEST(KvTable, ANewGenerationKnowsNothingOfTheOld) {
  KvTable entries;
  entries.Begin(1);
  entries.Put("k", "v");
  entries.Await(1, "waited for");
  entries.Begin(2);
  EXPECT_EQ(entries.generation(), 2u);
  EXPECT_EQ(entries.Find("k"), nullptr);
  EXPECT_TRUE(entries.Put("waited for", "v").empty());
}

}  // namespace
}  // namespace hvd
