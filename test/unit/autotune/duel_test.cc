#include "autotune/duel.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(Duel, AClearDifferenceEndsItAtOnce) {
  EXPECT_EQ(Duel(0.02).Add(0.2, 0.0), Duel::Verdict::kChoice);
  EXPECT_EQ(Duel(0.02).Add(0.0, 0.2), Duel::Verdict::kDefault);
}

TEST(Duel, ASmallDifferenceTakesRounds) {
  Duel duel(0.1);
  EXPECT_EQ(duel.Add(0.0, 0.1), Duel::Verdict::kOpen);
  EXPECT_EQ(duel.Add(0.0, 0.1), Duel::Verdict::kOpen);
  Duel::Verdict verdict = Duel::Verdict::kOpen;
  for (int i = 0; i < 6 && verdict == Duel::Verdict::kOpen; ++i) verdict = duel.Add(0.0, 0.1);
  EXPECT_EQ(verdict, Duel::Verdict::kDefault);
}

// A choice that is hardly better than the default may be worse soon.
TEST(Duel, AChoiceHasToBeAheadInTheEnd) {
  for (const double choice : {0.5, 0.55}) {
    Duel duel(0.1);
    Duel::Verdict verdict = Duel::Verdict::kOpen;
    for (int rounds = 0; rounds < 100 && verdict == Duel::Verdict::kOpen; ++rounds)
      verdict = duel.Add(choice, 0.5);
    EXPECT_EQ(verdict, choice > 0.5 ? Duel::Verdict::kChoice : Duel::Verdict::kDefault);
  }
}

}  // namespace
}  // namespace hvd
