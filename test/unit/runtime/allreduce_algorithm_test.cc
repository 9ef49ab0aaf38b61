#include "runtime/backends/gloo/allreduce_algorithm.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr size_t kPart = 512 << 10;

TEST(PiecesInFlight, AreAsManyAsFillAFastLink) {
  EXPECT_EQ(PiecesInFlight(1, kPart), 2u) << "one is added up while the next arrives";
  EXPECT_EQ(PiecesInFlight(40, kPart), 2u) << "500,000 bytes are on the way";
  EXPECT_EQ(PiecesInFlight(45, kPart), 3u) << "562,500 bytes";
  EXPECT_EQ(PiecesInFlight(200, kPart), 6u) << "2,500,000 bytes";
  EXPECT_EQ(PiecesInFlight(40, kPart / 4), 5u) << "of smaller pieces more";
}

TEST(PiecesInFlight, HaveALimit) {
  EXPECT_EQ(PiecesInFlight(5'000, kPart), 8u);
  EXPECT_EQ(PiecesInFlight(UINT64_MAX, kPart), 8u);
  EXPECT_EQ(PiecesInFlight(100, 1), 8u);
}

TEST(PiecesInFlight, AreTheMostWhereTheLinkIsNotKnown) {
  EXPECT_EQ(PiecesInFlight(0, kPart), 8u);
  EXPECT_EQ(PiecesInFlight(100, 0), 8u);
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
