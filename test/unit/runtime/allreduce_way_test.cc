#include "runtime/backends/gloo/allreduce_way.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr size_t kPart = 512 << 10;

TEST(PiecesUnderWay, AreAsManyAsFillAFastLink) {
  EXPECT_EQ(PiecesUnderWay(1, kPart), 2u) << "one is added up while the next arrives";
  EXPECT_EQ(PiecesUnderWay(40, kPart), 2u) << "500,000 bytes are on the way";
  EXPECT_EQ(PiecesUnderWay(45, kPart), 3u) << "562,500 bytes";
  EXPECT_EQ(PiecesUnderWay(200, kPart), 6u) << "2,500,000 bytes";
  EXPECT_EQ(PiecesUnderWay(40, kPart / 4), 5u) << "of smaller pieces more";
}

TEST(PiecesUnderWay, HaveALimit) {
  EXPECT_EQ(PiecesUnderWay(5'000, kPart), 8u);
  EXPECT_EQ(PiecesUnderWay(UINT64_MAX, kPart), 8u);
  EXPECT_EQ(PiecesUnderWay(100, 1), 8u);
}

TEST(PiecesUnderWay, AreTheMostWhereTheLinkIsNotKnown) {
  EXPECT_EQ(PiecesUnderWay(0, kPart), 8u);
  EXPECT_EQ(PiecesUnderWay(100, 0), 8u);
}

TEST(ChooseAllreduce, IsDirectForWhatEachLeaderMayReceiveInOneStep) {
  EXPECT_EQ(ChooseAllreduce(256 << 10, 2), AllreduceAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllreduce((256 << 10) + 1, 2), AllreduceAlgorithm::kSliced);
  EXPECT_EQ(ChooseAllreduce(64 << 10, 5), AllreduceAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllreduce(64 << 10, 6), AllreduceAlgorithm::kSliced);
  EXPECT_EQ(ChooseAllreduce(4, 16), AllreduceAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllreduce(4, 17), AllreduceAlgorithm::kSliced);
}

}  // namespace
}  // namespace hvd
