// Joins on one host of several that fail because a rank has left: what the backend gets to know,
// and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/core/engine.h"
#include "test/sim/sim_peers.h"

namespace hvd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Notes the names of the operations that are started. The other hosts let every operation end
// well, but a join.
class OtherHosts final : public Backend {
 public:
  std::string_view name() const override { return "other hosts"; }
  Status Prepare(const CollectiveCall&, std::unique_ptr<OpState>*,
                 BufferDescriptor* descriptor) override {
    *descriptor = {};
    return Status::Ok();
  }
  Result<bool> Start(const CollectiveCall&, OpState*, const MemberInputs& inputs) override {
    started.emplace_back(inputs.inter_host->name);
    return false;
  }
  Result<bool> Advance(const CollectiveCall& call, OpState*) override {
    if (call.collective == Collective::kJoin) return Aborted("in vain");
    return true;
  }
  bool Needs(const CollectiveCall&, const OpState*, uint32_t) const override { return false; }
  std::string Awaits(const CollectiveCall&, const OpState*) const override { return ""; }
  void Withdraw(const CollectiveCall&, const OpState*, std::string) override {}
  void Abandon(std::unique_ptr<OpState>, bool) override {}
  void Abort(const Status&) override {}

  std::vector<std::string> started;
};

// Ranks 0 to 2 are on this host, rank 3 is on another.
class JoinsOverHosts : public ::testing::Test {
 protected:
  JoinsOverHosts() {
    for (uint32_t r = 0; r < kHere; ++r) {
      Group world;
      world.ranks = {0, 1, 2, 3};
      world.index = world.local_index = r;
      world.local = world.local_to_group = {0, 1, 2};
      peers_[r] = std::make_unique<SimPeers>(net_, r);
      engines_[r] = std::make_unique<Engine>(*peers_[r], backends_[r], heap_, std::move(world),
                                             EngineOptions{});
    }
  }

  void Leave(uint32_t rank) {
    engines_[rank].reset();
    net_.Leave(rank);
  }
  Engine::Handle Submit(uint32_t rank, Collective collective, const char* name, int32_t set = 0) {
    RequestSpec spec;
    spec.collective = collective;
    spec.name = name;
    spec.process_set = set;
    Result<Engine::Handle> handle = engines_[rank]->Submit(spec);
    EXPECT_TRUE(handle.ok()) << handle.status().message();
    return handle.ok() ? *handle : 0;
  }
  Engine::Handle Join(uint32_t rank) { return Submit(rank, Collective::kJoin, "join"); }
  // All read their messages; a rank sees that another has left when it looks for the third time.
  bool Done(uint32_t rank, Engine::Handle handle) {
    bool done = false;
    for (int look = 0; look < 3 && !done; ++look) {
      net_.DeliverAll();
      done = *engines_[rank]->Poll(handle);
    }
    return done;
  }
  void AddSet(std::vector<uint32_t> ranks) {
    std::array<Engine::Handle, kHere> added{};
    for (uint32_t r = 0; r < kHere; ++r) added[r] = *engines_[r]->SubmitAddProcessSet(ranks);
    for (uint32_t r = 0; r < kHere; ++r) {
      ASSERT_TRUE(Done(r, added[r]));
      EXPECT_TRUE(engines_[r]->Wait(added[r], Duration(0)).ok());
      backends_[r].started.clear();
    }
  }

  static constexpr uint32_t kHere = 3;
  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  SimNet net_{kHere, 100, 1000};
  std::array<std::unique_ptr<SimPeers>, kHere> peers_;
  std::array<OtherHosts, kHere> backends_;
  std::array<std::unique_ptr<Engine>, kHere> engines_;
};

TEST_F(JoinsOverHosts, OtherHostsLearnOfAJoinInVainAndEndIt) {
  Leave(2);
  const Engine::Handle join = Join(0);
  ASSERT_TRUE(Done(0, join));
  EXPECT_THAT(backends_[0].started, ElementsAre("join")) << "they go on without rank 0";
  EXPECT_EQ(engines_[0]->Wait(join, Duration(0)).message(), "in vain");
  EXPECT_THAT(backends_[1].started, IsEmpty()) << "rank 1 has not joined";
}

TEST_F(JoinsOverHosts, ARankThatJoinedInVainStaysJoined) {
  const Engine::Handle join = Join(0);
  Join(1);
  Join(2);
  ASSERT_TRUE(Done(0, join)) << "a rank of the other host has left";
  EXPECT_EQ(engines_[0]->Wait(join, Duration(0)).code(), Code::kAborted);
  RequestSpec spec;
  spec.collective = Collective::kBarrier;
  spec.name = "more";
  EXPECT_THAT(engines_[0]->Submit(spec).status().message(), HasSubstr("rank 0 has joined"));
}

// Otherwise the other hosts would take "x" for an operation without rank 0, and not wait for it.
TEST_F(JoinsOverHosts, OtherHostsLearnOfItAfterAllThatTheRankTakesPartIn) {
  ASSERT_NO_FATAL_FAILURE(AddSet({0, 1, 3}));
  const Engine::Handle x = Submit(0, Collective::kBarrier, "x", 1);
  Leave(2);
  const Engine::Handle join = Join(0);
  EXPECT_FALSE(Done(0, join)) << "rank 1 may still take part in x";
  EXPECT_THAT(backends_[0].started, IsEmpty());
  Join(1);
  ASSERT_TRUE(Done(0, join));
  EXPECT_THAT(backends_[0].started, ElementsAre("x", "join"));
  EXPECT_TRUE(Done(0, x));
  EXPECT_TRUE(engines_[0]->Wait(x, Duration(0)).ok());
}

}  // namespace
}  // namespace hvd::test
