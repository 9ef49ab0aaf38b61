#include "runtime/core/state/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RoundsTest : public ::testing::Test {
 protected:
  RequestSpec Sum(std::string_view name) { return TensorOf(Collective::kAllreduce, name, shape_); }

  const std::vector<int64_t> shape_{3, 2};
  OneRank rank_{0, 3};
  Rounds& rounds_ = rank_.state.rounds;
  Joins& joins_ = rank_.state.joins;
  NameTable& names_ = rank_.state.names;
};

TEST_F(RoundsTest, IsReadyWithTheLastAnnouncementAlsoOfThisRank) {
  Operation* op = rank_.Describe(Sum("x"));
  rank_.Announce(op->name, 1);
  EXPECT_FALSE(rounds_.Ready(*op->name));
  rank_.Announce(op->name, 2);
  EXPECT_FALSE(rounds_.Ready(*op->name)) << "this rank has not announced it";
  op->sent = true;
  EXPECT_TRUE(rounds_.Ready(*op->name));
  op->started = true;
  EXPECT_FALSE(rounds_.Ready(*op->name));
}

TEST_F(RoundsTest, IsReadyWithoutRanksThatHaveJoined) {
  Operation* op = rank_.Submit(Sum("x"));
  rank_.Announce(op->name, 1);
  joins_.Note(1);
  EXPECT_FALSE(rounds_.Ready(*op->name)) << "rank 1 announced it before it joined";
  joins_.Note(2);
  EXPECT_TRUE(rounds_.Ready(*op->name));
}

TEST_F(RoundsTest, ComparesDetailsAgainOnlyWhenOneHasChanged) {
  TensorName* name = rank_.Submit(Sum("x"))->name;
  rank_.Announce(name, 1);
  rank_.Announce(name, 2);
  EXPECT_TRUE(rounds_.Agree(name).ok());
  EXPECT_TRUE(name->agreed);
  name->agreed = false;
  name->details[2].parts[0].shape = {3, 4};
  const Status verdict = rounds_.Agree(name);
  EXPECT_EQ(verdict.code(), Code::kMismatch);
  EXPECT_THAT(verdict.message(), HasSubstr("rank 2"));
  EXPECT_FALSE(name->agreed);
}

TEST_F(RoundsTest, AVerdictWithoutARankThatHasJoinedIsNotKept) {
  TensorName* name = rank_.Submit(Sum("x"))->name;
  rank_.Announce(name, 1);
  joins_.Note(2);
  EXPECT_TRUE(rounds_.Agree(name).ok());
  EXPECT_FALSE(name->agreed);
  name = rank_.Submit(TensorOf(Collective::kAllgather, "g", shape_))->name;
  rank_.Announce(name, 1);
  EXPECT_EQ(rounds_.Agree(name).code(), Code::kMismatch);
}

TEST_F(RoundsTest, ShowsTheBackendWhatEachMemberBrought) {
  Operation* op = rank_.Submit(TensorOf(Collective::kAllgather, "g", shape_));
  TensorName* name = op->name;
  rank_.Announce(name, 1);
  rank_.Announce(name, 2);
  name->details[2].parts[0].shape = {7, 2};
  MemberInputs inputs = rounds_.InputsOf(*name, 0);
  EXPECT_EQ(inputs.descriptors.data(), name->descriptors.data());
  ASSERT_EQ(inputs.extents.size(), 3u);
  EXPECT_EQ(inputs.extents[0].rows, 3);
  EXPECT_EQ(inputs.extents[2].rows, 7);
  EXPECT_TRUE(inputs.joined.empty());
  EXPECT_TRUE(rounds_.InputsOf(*rank_.Submit(Sum("x"))->name, 0).extents.empty());
}

TEST_F(RoundsTest, ShowsTheBackendTheSecondTensorOfAGroup) {
  const std::vector<TensorSpec> tensors(2, Sum("").tensor);
  RequestSpec spec = Sum("group");
  spec.group = tensors;
  Operation* op = rank_.Submit(spec);
  rank_.Announce(op->name, 1);
  joins_.Note(2);
  op->parts[1].descriptor.words[0] = 10;
  op->name->more_descriptors[1].resize(1);
  op->name->more_descriptors[1][0].words[0] = 11;
  const MemberInputs inputs = rounds_.InputsOf(*op->name, 1);
  EXPECT_EQ(inputs.descriptors[0].words[0], 10u);
  EXPECT_EQ(inputs.descriptors[1].words[0], 11u);
  EXPECT_EQ(inputs.descriptors[2].words[0], 0u);
  EXPECT_THAT(inputs.joined, ElementsAre(0, 0, 1));
}

TEST_F(RoundsTest, ARankThatHasJoinedForgetsRoundsThatTheOthersComplete) {
  TensorName* name = names_.Add(0, &rank_.state.sets.world(), "x");
  ++name->references;  // a number of a peer
  rank_.Announce(name, 1);
  rounds_.DiscardIfOver(name);
  joins_.Note(0);
  rounds_.DiscardIfOver(name);
  EXPECT_EQ(name->arrived, 1u) << "rank 2 has not announced it";
  rank_.Announce(name, 2);
  rounds_.DiscardIfOver(name);
  EXPECT_EQ(name->arrived, 0u);
}

TEST_F(RoundsTest, IsUnsatisfiableWhenAMemberIsGoneThatHasNotAnnouncedIt) {
  TensorName* name = rank_.Submit(Sum("x"))->name;
  EXPECT_FALSE(rounds_.any_gone());
  rounds_.NoteGone(1);
  rounds_.NoteGone(1);
  EXPECT_EQ(rounds_.gone().size(), 1u);
  EXPECT_TRUE(rounds_.Unsatisfiable(*name));
  rank_.Announce(name, 1);
  EXPECT_FALSE(rounds_.Unsatisfiable(*name)) << "its announcement is here";
  name = rank_.Submit(Sum("y"))->name;
  joins_.Note(1);
  EXPECT_FALSE(rounds_.Unsatisfiable(*name)) << "it had joined before it left";
}

TEST_F(RoundsTest, AJoinNeedsEveryRank) {
  RequestSpec spec;
  spec.collective = Collective::kJoin;
  spec.name = NameTable::kJoinName;
  TensorName* name = rank_.Submit(spec)->name;
  joins_.Note(1);
  EXPECT_TRUE(rounds_.Lacks(*name, 1));
  EXPECT_THAT(rounds_.MissingRanks(*name), ElementsAre(1, 2));
}

TEST_F(RoundsTest, NamesTheRanksWhoseAnnouncementIsMissing) {
  Operation* op = rank_.Submit(Sum("x"));
  EXPECT_THAT(rounds_.MissingRanks(*op->name), ElementsAre(1, 2));
  rank_.Announce(op->name, 1);
  EXPECT_THAT(rounds_.MissingRanks(*op->name), ElementsAre(2));
  joins_.Note(2);
  EXPECT_THAT(rounds_.MissingRanks(*op->name), ElementsAre());
  op->started = true;
  EXPECT_THAT(rounds_.MissingRanks(*op->name), ElementsAre());
}

TEST_F(RoundsTest, SetsAreChangingFromTheAnnouncementOfAPeerOn) {
  EXPECT_FALSE(rounds_.SetsAreChanging(1));
  TensorName* name =
      names_.Add(NameTable::kSetsDomain, &rank_.state.sets.world(), NameTable::kSetsName);
  name->here[1] = 1;
  name->arrived = 1;
  EXPECT_TRUE(rounds_.SetsAreChanging(1));
  EXPECT_FALSE(rounds_.SetsAreChanging(2));
  rounds_.NoteGone(2);
  EXPECT_FALSE(rounds_.SetsAreChanging(1)) << "it will never be complete";
}

// With other hosts a change goes on after the announcements of this host. A peer that learned of
// its end earlier may join by then.
TEST_F(RoundsTest, SetsAreChangingUntilTheChangeIsOverOnThisRank) {
  RequestSpec spec;
  spec.collective = Collective::kRemoveProcessSet;
  spec.name = NameTable::kSetsName;
  Operation* op = rank_.Submit(spec);
  for (uint32_t peer : {1, 2}) rank_.Announce(op->name, peer);
  op->started = true;
  op->name->ClearRound();
  EXPECT_TRUE(rounds_.SetsAreChanging(1));
  op->done = true;
  EXPECT_FALSE(rounds_.SetsAreChanging(1));
}

}  // namespace
}  // namespace hvd::test
