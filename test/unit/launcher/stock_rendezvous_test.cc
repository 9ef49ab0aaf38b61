// The answers to workers of stock Horovod.
#include "launcher/external/stock/stock_rendezvous.h"

#include <gtest/gtest.h>

#include <optional>

namespace hvd {
namespace {

// Two hosts: a with ranks 0 and 1, b with rank 2.
std::vector<StockSlot> ThreeSlots() {
  return {{"a", {0, 0, 0, 2, 0, 2}}, {"a", {1, 0, 1, 2, 0, 1}}, {"b", {2, 1, 0, 1, 1, 2}}};
}

class StockRendezvousTest : public ::testing::Test {
 protected:
  HttpAnswer Ask(std::string_view method, std::string_view target, std::string_view body = "") {
    std::optional<HttpAnswer> answer;
    rendezvous_.Handle({kHttpOk, method, target, body},
                       [&](HttpAnswer given) { answer = std::move(given); });
    return answer.value_or(HttpAnswer{.code = 0});
  }
  std::string Get(std::string_view target) {
    const HttpAnswer answer = Ask("GET", target);
    return answer.code == kHttpOk ? answer.body : std::to_string(answer.code);
  }

  StockRendezvous rendezvous_;
};

TEST(StockScopes, HaveAsManyRanksAsMeetInThem) {
  const StockStore::Sizes expected = {
      {"global", 3}, {"local_a", 2}, {"local_b", 1}, {"cross_0", 2}, {"cross_1", 1}};
  EXPECT_EQ(StockScopes(ThreeSlots()), expected);
}

TEST_F(StockRendezvousTest, KeepsBytesAsTheyAre) {
  rendezvous_.Begin(ThreeSlots());
  EXPECT_EQ(Get("/global/0"), "404");
  const std::string bytes("\0\xff\r\n\r\n", 6);
  EXPECT_EQ(Ask("PUT", "/global/0", bytes).code, kHttpOk);
  EXPECT_EQ(Get("/global/0"), bytes);
  EXPECT_EQ(Ask("PUT", "/global/0", "other").code, kHttpOk);
  EXPECT_EQ(Get("/glob%61l/0"), "other");
  EXPECT_EQ(Get("/global/1"), "404");
}

TEST_F(StockRendezvousTest, AScopeOfTheWorldIsEmptyWhenEachOfItsRanksHasFinished) {
  rendezvous_.Begin(ThreeSlots());
  for (const char* target : {"/cross_0/0", "/cross_0/1"}) Ask("PUT", target, "x");
  EXPECT_EQ(Ask("DELETE", "/cross_0/0").code, kHttpOk);
  EXPECT_EQ(Ask("DELETE", "/cross_0/0").code, kHttpOk);
  EXPECT_EQ(Get("/cross_0/0"), "x");  // another rank may still look for it
  Ask("DELETE", "/cross_0/1");
  EXPECT_EQ(Get("/cross_0/0"), "404");
}

TEST_F(StockRendezvousTest, AKeyOfAnotherScopeGoesAtOnce) {
  rendezvous_.Begin(ThreeSlots());
  for (const char* target : {"/global_process_set_hash_f0/0", "/global_process_set_hash_f0/1"})
    Ask("PUT", target, "x");
  Ask("DELETE", "/global_process_set_hash_f0/0");
  EXPECT_EQ(Get("/global_process_set_hash_f0/0"), "404");
  EXPECT_EQ(Get("/global_process_set_hash_f0/1"), "x");
  EXPECT_EQ(Ask("DELETE", "/none/1").code, kHttpOk);
}

TEST_F(StockRendezvousTest, OtherPathsAndMethodsAreRefused) {
  rendezvous_.Begin(ThreeSlots());
  for (const char* target : {"/", "/global", "/global/", "//0", "/global/0/1", "global/0", "/a%/0"})
    EXPECT_EQ(Ask("GET", target).code, kHttpBadRequest) << target;
  EXPECT_EQ(Ask("HEAD", "/global/0").code, kHttpNotAllowed);
  EXPECT_EQ(Ask("POST", "/global/0", "x").code, kHttpNotAllowed);
}

TEST_F(StockRendezvousTest, AnElasticWorkerIsToldItsPlaceWhenTheWorldIsKnown) {
  std::vector<std::string> told;
  const auto ask = [&](std::string_view target) {
    rendezvous_.Handle({kHttpOk, "GET", target, ""},
                       [&](const HttpAnswer& answer) { told.push_back(answer.body); });
  };
  ask("/rank_and_size/b:0");
  EXPECT_TRUE(told.empty());
  rendezvous_.Begin(ThreeSlots());
  EXPECT_EQ(told, (std::vector<std::string>{"2,3,0,1,1,2"}));
  ask("/rank_and_size/a:2");
  EXPECT_EQ(told.back(), "-1,-1,-1,-1,-1,-1");

  // All of them begin again together.
  told.clear();
  for (const char* target : {"/rank_and_size/a:1", "/rank_and_size/a:0", "/rank_and_size/a:0"})
    ask(target);
  EXPECT_TRUE(told.empty());
  ask("/rank_and_size/b:0");
  EXPECT_EQ(told,
            (std::vector<std::string>{"1,3,1,2,0,1", "0,3,0,2,0,2", "0,3,0,2,0,2", "2,3,0,1,1,2"}));

  // One is gone, and the others wait for the next world.
  told.clear();
  ask("/rank_and_size/a:0");
  rendezvous_.Break();
  ask("/rank_and_size/a:1");
  ask("/rank_and_size/b:0");
  EXPECT_TRUE(told.empty());
  rendezvous_.Begin({{"a", {0, 0, 0, 1, 0, 1}}});
  EXPECT_EQ(told,
            (std::vector<std::string>{"0,1,0,1,0,1", "-1,-1,-1,-1,-1,-1", "-1,-1,-1,-1,-1,-1"}));
}

TEST_F(StockRendezvousTest, APickleIsTakenAndDropped) {
  rendezvous_.Begin(ThreeSlots());
  EXPECT_EQ(Ask("PUT", "/worker_addresses/a:0", "gASVpickle").code, kHttpOk);
  EXPECT_EQ(Get("/worker_addresses/a:0"), "404");
}

TEST_F(StockRendezvousTest, AnewWorldFindsNothingOfTheFormerOne) {
  rendezvous_.Begin(ThreeSlots());
  Ask("PUT", "/global/0", "x");
  Ask("PUT", "/other/0", "x");
  rendezvous_.Begin(ThreeSlots());
  EXPECT_EQ(Get("/global/0"), "404");
  EXPECT_EQ(Get("/other/0"), "404");
}

TEST(StockStore, CountsWhatItHolds) {
  StockStore store;
  store.Begin({{"global", 2}});
  ASSERT_TRUE(store.Put("global", "0", "abc"));
  ASSERT_TRUE(store.Put("global", "1", ""));
  const size_t before = store.bytes();
  ASSERT_TRUE(store.Put("other", "0", "x"));
  ASSERT_TRUE(store.Put("other", "0", "xyz"));
  store.Delete("other", "0");
  EXPECT_EQ(store.bytes(), before);
  store.Delete("global", "0");
  store.Delete("global", "1");
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(StockStore, HasLimits) {
  StockStore store;
  EXPECT_FALSE(store.Put("s", "k", std::string(kMostStockValue + 1, 'x')));
  const std::string value(kMostStockValue, 'x');
  size_t taken = 0;
  while (store.Put("s", std::to_string(taken), value)) ++taken;
  EXPECT_EQ(taken, kFewestStockBytes / kMostStockValue - 1);
  EXPECT_LE(store.bytes(), kFewestStockBytes);
  EXPECT_TRUE(store.Put("s", "0", ""));
  // More ranks have more to say to each other.
  store.Begin({{"global", 100}});
  EXPECT_EQ(store.most_bytes(), kFewestStockBytes + kStockBytesOfPair * 10'000);
  store.Begin({{"global", 100'000}});
  EXPECT_EQ(store.most_bytes(), kMostStockBytes);
}

}  // namespace
}  // namespace hvd
