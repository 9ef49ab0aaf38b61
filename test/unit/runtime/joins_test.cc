#include "runtime/core/state/joins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

class JoinsTest : public ::testing::Test {
 protected:
  const std::vector<int64_t> shape_{3};
  OneRank rank_{0, 4};
  Joins& joins_ = rank_.state.joins;
};

TEST_F(JoinsTest, CountsThePeersThatHaveJoinedUntilAllHave) {
  EXPECT_FALSE(joins_.any());
  joins_.Note(2);
  EXPECT_TRUE(joins_.any());
  EXPECT_TRUE(joins_.Has(2));
  EXPECT_FALSE(joins_.Has(1));
  EXPECT_FALSE(joins_.self());
  joins_.Note(0);
  EXPECT_TRUE(joins_.self());
  joins_.Clear();
  EXPECT_FALSE(joins_.any());
  EXPECT_FALSE(joins_.Has(2));
}

TEST_F(JoinsTest, AMemberIsAbsentUnlessItAnnouncedTheRoundBeforeItJoined) {
  TensorName* name = rank_.Submit(TensorOf(Collective::kAllreduce, "x", shape_))->name;
  EXPECT_EQ(joins_.AbsentMembers(*name), 0u);
  rank_.Announce(name, 1);
  joins_.Note(1);
  joins_.Note(2);
  EXPECT_EQ(joins_.AbsentMembers(*name), 1u) << "rank 1 announced first, rank 3 has not joined";
  joins_.Note(0);
  EXPECT_EQ(joins_.AbsentMembers(*name), 1u) << "this rank is not counted";
}

TEST_F(JoinsTest, NobodyIsAbsentFromTheJoinItself) {
  RequestSpec spec;
  spec.collective = Collective::kJoin;
  spec.name = NameTable::kJoinName;
  TensorName* name = rank_.Submit(spec)->name;
  joins_.Note(1);
  EXPECT_EQ(joins_.AbsentMembers(*name), 0u);
}

TEST_F(JoinsTest, OnlyAllreduceAndBarrierGoOnWithoutARank) {
  joins_.Note(3);
  for (Collective collective : {Collective::kAllgather, Collective::kBroadcast}) {
    TensorName* name =
        rank_.Submit(TensorOf(collective, std::string(NameOf(collective)), shape_))->name;
    rank_.Announce(name, 1);
    rank_.Announce(name, 2);
    const Status checked = joins_.CheckAbsent(*name);
    EXPECT_EQ(checked.code(), Code::kMismatch);
    EXPECT_THAT(checked.message(), HasSubstr("needs rank 3, which has joined"));
  }
  EXPECT_TRUE(joins_.CheckAbsent(*rank_.Submit(BarrierOf("b"))->name).ok());
  const RequestSpec sum = TensorOf(Collective::kAllreduce, "x", shape_);
  EXPECT_TRUE(joins_.CheckAbsent(*rank_.Submit(sum)->name).ok());
}

TEST_F(JoinsTest, TheLatestStampIsTheLastAndOfEqualOnesTheHighestRank) {
  TensorName* name = rank_.Submit(BarrierOf("b"))->name;
  auto last = [&](std::array<int, 4> stamps) {
    for (uint32_t i = 0; i < 4; ++i) {
      Operation join;
      join.parts.resize(1);
      Joins::Stamp(&join, TimePoint(std::chrono::milliseconds(stamps[i])));
      name->descriptors[i] = join.parts[0].descriptor;
    }
    return Joins::LastJoined(*name);
  };
  EXPECT_EQ(last({4, 3, 2, 1}), 0u);
  EXPECT_EQ(last({1, 9, 2, 3}), 1u);
  EXPECT_EQ(last({1, 5, 5, 3}), 2u);
  EXPECT_EQ(last({7, 7, 7, 7}), 3u);
}

}  // namespace
}  // namespace hvd::test
