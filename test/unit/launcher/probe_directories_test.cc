#include <gtest/gtest.h>

#include "launcher/agent/inspection/pair_probe.h"
#include "launcher/doctor/probed_hosts.h"

namespace hvd {
namespace {

TEST(ProbeDirectories, AHostGetsAValueThatIsThere) {
  ProbeDirectories directories;
  EXPECT_TRUE(directories.Put(PutKey{0, "mesh.1", "here"}).empty());
  const auto answers = directories.Want(3, WantKey{0, "mesh.1"});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].first, 3u);
  EXPECT_EQ(answers[0].second.value, "here");
}

TEST(ProbeDirectories, AHostThatWaitsGetsTheValueWhenItComes) {
  ProbeDirectories directories;
  EXPECT_TRUE(directories.Want(3, WantKey{0, "mesh.1"}).empty());
  const auto answers = directories.Put(PutKey{0, "mesh.1", "here"});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].first, 3u);
  EXPECT_EQ(answers[0].second.key, "mesh.1");
}

TEST(ProbeDirectories, TheProofAndThePairsHaveDirectoriesOfTheirOwn) {
  ProbeDirectories directories;
  directories.Put(PutKey{0, "mesh.1", "proof"});
  EXPECT_TRUE(directories.Want(3, WantKey{PairProbe::kGeneration, "mesh.1"}).empty());
  const auto answers = directories.Put(PutKey{PairProbe::kGeneration, "mesh.1", "pairs"});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].second.value, "pairs");
}

TEST(ProbeDirectories, OtherGenerationsAreIgnored) {
  ProbeDirectories directories;
  EXPECT_TRUE(directories.Want(3, WantKey{77, "mesh.1"}).empty());
  EXPECT_TRUE(directories.Put(PutKey{77, "mesh.1", "here"}).empty());
}

}  // namespace
}  // namespace hvd
