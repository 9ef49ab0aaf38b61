#include "autotune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

SearchSpace OneAxis(bool pinned = false) {
  return *SearchSpace::Make(
      {{.name = "x", .low = 1, .high = 1024, .initial = 4, .pinned = pinned}});
}

// How good x is: best at 64, 30 % better than at 4.
double Score(double x) { return 1.3 - 0.3 * std::pow(std::log(x / 64) / std::log(16), 2); }

struct Search {
  Tuner tuner;
  std::mt19937_64 noise{9};

  void Windows(int windows, double deviation = 0.01, double factor = 1) {
    for (int i = 0; i < windows; ++i) {
      const double score = factor * Score(tuner.trial().point[0]);
      tuner.Record(score * std::exp(deviation * NormalRandom(noise)));
    }
  }
};

TEST(Tuner, FindsAGainProvesItAndEnds) {
  Search search{Tuner(OneAxis(), {})};
  EXPECT_EQ(search.tuner.trial().kind, Trial::Kind::kDefault);
  search.Windows(40);
  ASSERT_TRUE(search.tuner.settled());
  const TuningResult result = search.tuner.result();
  EXPECT_TRUE(result.gained);
  EXPECT_EQ(result.point, search.tuner.trial().point);
  EXPECT_GT(Score(result.point[0]), 1.2);
  EXPECT_LT(result.gain_low, result.gain);
  EXPECT_LT(result.gain, result.gain_high);
  EXPECT_GT(result.gain_low, 0.1);
  EXPECT_LT(result.windows, 40U);
}

TEST(Tuner, KeepsTheDefaultWhereNothingIsBetter) {
  Tuner tuner(OneAxis(), {});
  std::mt19937_64 noise(4);
  for (int i = 0; i < 60; ++i) {
    const double distance = std::abs(std::log(tuner.trial().point[0] / 4));
    tuner.Record((1 - 0.2 * distance) * std::exp(0.01 * NormalRandom(noise)));
  }
  ASSERT_TRUE(tuner.settled());
  EXPECT_NEAR(std::log(tuner.result().point[0] / 4), 0, 0.3);
}

// Of points that differ by noise alone one looks best; a job has nothing from it but a surprise.
TEST(Tuner, AGainWithinTheNoiseIsNone) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Tuner tuner(OneAxis(), {});
    std::mt19937_64 noise(seed);
    for (int i = 0; i < 60 && !tuner.settled(); ++i)
      tuner.Record(std::exp(0.05 * NormalRandom(noise)));
    const TuningResult result = tuner.result();
    ASSERT_TRUE(tuner.settled());
    EXPECT_TRUE(!result.gained || result.gain_low > 0) << "seed " << seed;
    EXPECT_EQ(result.gained, result.point != TunePoint{4}) << "seed " << seed;
  }
}

TEST(Tuner, WarmUpWindowsCountForNothing) {
  Tuner tuner(OneAxis(), {.warmup_windows = 2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tuner.trial().kind, Trial::Kind::kWarmup);
    EXPECT_THAT(tuner.trial().point, ElementsAre(4));
    tuner.Record(1e9);
  }
  EXPECT_EQ(tuner.trial().kind, Trial::Kind::kDefault);
  EXPECT_EQ(tuner.result().windows, 0U);
}

TEST(Tuner, WithNothingToChooseItIsOverAtOnce) {
  Tuner tuner(OneAxis(/*pinned=*/true), {});
  EXPECT_TRUE(tuner.settled());
  for (int i = 0; i < 100; ++i) tuner.Record(i % 2 == 0 ? 1 : 100);
  EXPECT_THAT(tuner.trial().point, ElementsAre(4));
  EXPECT_FALSE(tuner.result().gained);
}

TEST(Tuner, NoScoreTeachesNothing) {
  for (const double none : {kNan, kInfinity, -kInfinity, 0.0, -3.0}) {
    Tuner tuner(OneAxis(), {});
    for (int i = 0; i < 100; ++i) tuner.Record(none);
    EXPECT_TRUE(tuner.settled()) << none;
    EXPECT_THAT(tuner.trial().point, ElementsAre(4)) << none;
    EXPECT_FALSE(tuner.result().gained);
  }
}

TEST(Tuner, ScoresThatAreMissingNowAndThenDoNotMislead) {
  Search search{Tuner(OneAxis(), {})};
  for (int i = 0; i < 30; ++i) {
    search.Windows(1);
    search.tuner.Record(i % 3 == 0 ? kNan : i % 3 == 1 ? 0 : kInfinity);
  }
  EXPECT_TRUE(search.tuner.settled());
  EXPECT_GT(Score(search.tuner.result().point[0]), 0.95);
}

TEST(Tuner, OneConstantScoreEndsWithTheDefault) {
  Tuner tuner(OneAxis(), {});
  for (int i = 0; i < 60; ++i) tuner.Record(5);
  EXPECT_TRUE(tuner.settled());
  EXPECT_THAT(tuner.trial().point, ElementsAre(4));
}

TEST(Tuner, AChoiceOfAnEarlierSearchIsVerifiedInAFewWindows) {
  Search search{Tuner(OneAxis(), {.warmup_windows = 1})};
  search.Windows(1);
  search.tuner.Verify({64});
  search.Windows(6);
  ASSERT_TRUE(search.tuner.settled());
  const TuningResult result = search.tuner.result();
  EXPECT_THAT(result.point, ElementsAre(64));
  EXPECT_GT(result.gain_low, 0.2);
  EXPECT_EQ(result.why_over, "because the choice of an earlier search is better again");
}

TEST(Tuner, AnEarlierSearchThatFoundNothingIsBelieved) {
  Search search{Tuner(OneAxis(), {})};
  search.tuner.Verify({4});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(search.tuner.trial().point, ElementsAre(4));
    search.Windows(1);
  }
  ASSERT_TRUE(search.tuner.settled());
  EXPECT_FALSE(search.tuner.result().gained);
}

TEST(Tuner, AKnownChoiceThatIsWorseNowStartsASearch) {
  Search search{Tuner(OneAxis(), {})};
  search.tuner.Verify({1});
  search.Windows(50);
  ASSERT_TRUE(search.tuner.settled());
  EXPECT_GT(Score(search.tuner.result().point[0]), 1.2);
}

TEST(Tuner, AKnownChoiceWithoutScoresIsGivenUp) {
  Search search{Tuner(OneAxis(), {})};
  search.tuner.Verify({1000});
  for (int i = 0; i < 60; ++i) {
    if (search.tuner.trial().point[0] == 1000) {
      search.tuner.Record(kNan);
    } else {
      search.Windows(1);
    }
  }
  ASSERT_TRUE(search.tuner.settled());
  EXPECT_NE(search.tuner.result().point[0], 1000);
  EXPECT_TRUE(search.tuner.result().gained);
}

TEST(Tuner, AKnownChoiceDoesNotSurviveADrift) {
  Search search{Tuner(OneAxis(), {})};
  search.tuner.Verify({64});
  search.Windows(20);
  ASSERT_TRUE(search.tuner.settled());
  search.Windows(60, 0.01, 0.5);
  EXPECT_GT(search.tuner.searches(), 1U);
  EXPECT_TRUE(search.tuner.settled());
}

TEST(Tuner, ExpectsThePartOfTheDefaultsSpeed) {
  Search search{Tuner(OneAxis(), {})};
  EXPECT_EQ(search.tuner.Expect({64}).mean, 1);
  search.Windows(40);
  EXPECT_DOUBLE_EQ(search.tuner.Expect({4}).mean, 1);
  const Tuner::Expectation expected = search.tuner.Expect(search.tuner.result().point);
  EXPECT_NEAR(expected.mean, 1 + search.tuner.result().gain, 1e-9);
  EXPECT_GT(expected.deviation, 0);
  EXPECT_LT(expected.deviation, 0.1);
}

// R12: 80 steps, as a window has five. Noisy windows are worth less, and more of them are run.
TEST(Tuner, ASearchOfQuietWindowsIsOverAfterSixteen) {
  size_t most = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    for (const double noise : {0.01, 0.2}) {
      Search search{Tuner(OneAxis(), {.seed = seed})};
      search.noise.seed(seed);
      while (!search.tuner.settled()) search.Windows(1, noise);
      const size_t windows = search.tuner.result().windows;
      if (noise < 0.1) {
        EXPECT_LE(windows, 16U) << "seed " << seed;
      }
      most = std::max(most, windows);
    }
  }
  EXPECT_GT(most, 16U);
  EXPECT_LE(most, 40U);
}

TEST(Tuner, SameScoresSameTrials) {
  const auto points = [](uint64_t seed) {
    Search search{Tuner(OneAxis(), {.seed = seed})};
    std::vector<TunePoint> seen;
    for (int i = 0; i < 12; ++i) {
      seen.push_back(search.tuner.trial().point);
      search.Windows(1);
    }
    return seen;
  };
  EXPECT_EQ(points(3), points(3));
  EXPECT_NE(points(3), points(4));
}

TEST(Tuner, NothingIsTriedThatThePredictionPutsFarBelow) {
  Tuner tuner(OneAxis(), {.predicted = [](const TunePoint& p) { return Score(p[0]); }});
  std::mt19937_64 noise(4);
  for (int i = 0; i < 40; ++i) {
    const double x = tuner.trial().point[0];
    EXPECT_GT(Score(x), 0.9 * Score(4)) << x;
    tuner.Record(Score(x) * std::exp(0.01 * NormalRandom(noise)));
  }
}

TEST(Tuner, ARightPredictionIsBelievedAtOnce) {
  Search search{Tuner(OneAxis(), {.predicted = [](const TunePoint& p) { return Score(p[0]); }})};
  search.Windows(12);
  EXPECT_GT(Score(search.tuner.result().point[0]), 1.25);
}

TEST(Tuner, APredictionMayComeAfterTheWarmUp) {
  Search search{Tuner(OneAxis(), {.warmup_windows = 1})};
  search.Windows(1);
  search.tuner.Predict([](const TunePoint& p) { return Score(p[0]); });
  for (int i = 0; i < 12; ++i) {
    EXPECT_GT(Score(search.tuner.trial().point[0]), 0.9 * Score(4));
    search.Windows(1);
  }
  EXPECT_GT(Score(search.tuner.result().point[0]), 1.25);
}

TEST(Tuner, ALaterPredictionHoldsForWhatWasMeasured) {
  Search search{Tuner(OneAxis(), {.promising = {{16}}})};
  search.Windows(4);
  search.tuner.Predict([](const TunePoint& p) { return Score(p[0]); });
  EXPECT_NEAR(search.tuner.Expect({64}).mean, Score(64) / Score(4), 0.05);
}

TEST(Tuner, APredictionThatIsNoNumberIsNone) {
  Search search{Tuner(OneAxis(), {.predicted = [](const TunePoint&) { return kNan; }})};
  search.Windows(40, 0.01);
  EXPECT_GT(Score(search.tuner.result().point[0]), 1.15);
}

TEST(Tuner, WhatWasGoodElsewhereIsTriedFirst) {
  Search search{Tuner(OneAxis(), {.promising = {{64}}})};
  search.Windows(1);
  EXPECT_EQ(search.tuner.trial().kind, Trial::Kind::kCandidate);
  EXPECT_NEAR(search.tuner.trial().point[0], 64, 1e-9);
}

TEST(Tuner, AWindowThatMayHaveBeenBadIsFollowedByOneThatIsFine) {
  Tuner tuner(OneAxis(), {});
  std::mt19937_64 noise(4);
  bool unproven = false;
  for (int i = 0; i < 40 && !tuner.settled(); ++i) {
    const bool candidate = tuner.trial().kind == Trial::Kind::kCandidate;
    EXPECT_FALSE(unproven && candidate) << "window " << i;
    unproven = candidate;
    // With so much noise one window proves nothing.
    tuner.Record(std::exp(0.2 * NormalRandom(noise)));
  }
}

// P45, R12: a choice that was right once is left when it no longer is.
TEST(Tuner, ADriftOpensTheSearchAgain) {
  Search search{Tuner(OneAxis(), {})};
  search.Windows(60);
  ASSERT_TRUE(search.tuner.settled());
  EXPECT_EQ(search.tuner.searches(), 1U);
  search.Windows(20, 0.01, /*factor=*/0.7);
  EXPECT_EQ(search.tuner.searches(), 2U);
  search.Windows(60, 0.01, 0.7);
  EXPECT_TRUE(search.tuner.settled());
  EXPECT_GT(Score(search.tuner.result().point[0]), 1.15);
}

// Never two bad windows in a row: one is enough to look whether the default is better by now.
TEST(Tuner, ABadWindowIsFollowedByTheDefault) {
  Search search{Tuner(OneAxis(), {})};
  search.Windows(60);
  ASSERT_TRUE(search.tuner.settled());
  search.Windows(1, 0, 0.4);
  EXPECT_EQ(search.tuner.trial().kind, Trial::Kind::kCheck);
  EXPECT_THAT(search.tuner.trial().point, ElementsAre(4));
  search.Windows(1, 0, 1);  // it is: the choice alone has become worse
  EXPECT_EQ(search.tuner.searches(), 1U);
  search.Windows(1, 0, 0.4);  // the first bad window proves nothing, because it was chosen for that
  EXPECT_EQ(search.tuner.searches(), 2U);
}

TEST(Tuner, OneBadWindowIsForgiven) {
  Search search{Tuner(OneAxis(), {})};
  search.Windows(60);
  ASSERT_TRUE(search.tuner.settled());
  for (int i = 0; i < 10; ++i) {
    search.Windows(2, 0, 0.4);  // so is the default: the machine was busy
    EXPECT_EQ(search.tuner.trial().kind, Trial::Kind::kSettled);
    search.Windows(30);
  }
  EXPECT_EQ(search.tuner.searches(), 1U);
}

}  // namespace
}  // namespace hvd
