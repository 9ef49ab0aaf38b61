#include "runtime/api/backend_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Used(const BackendFacts& facts) {
  std::vector<std::string> names;
  for (const BackendRow& row : BackendRows()) {
    if (row.used(facts)) names.emplace_back(row.name);
  }
  return names;
}

TEST(BackendList, SaysWhatAWorldUses) {
  EXPECT_THAT(Used({}), ElementsAre("shm"));
  EXPECT_THAT(Used({.several_hosts = true}), ElementsAre("shm", "gloo"));
  EXPECT_THAT(Used({.several_hosts = true, .over_mpi = true}), ElementsAre("shm", "mpi"));
  EXPECT_THAT(Used({.over_mpi = true, .mpi_threads = true}),
              ElementsAre("shm", "mpi", "mpi_threads"));
  EXPECT_THAT(Used({.several_hosts = true, .mpi_beside = true}), ElementsAre("shm", "gloo", "mpi"));
  EXPECT_THAT(Used({.cuda = true}), ElementsAre("shm", "cuda"));
  EXPECT_THAT(Used({.cuda = true, .nccl = true}), ElementsAre("shm", "cuda", "nccl"));
}

TEST(BackendList, OneBackendConnectsTheHosts) {
  EXPECT_EQ(InterHostBackend({.over_mpi = true}), nullptr);
  EXPECT_EQ(InterHostBackend({.several_hosts = true})->name, "gloo");
  EXPECT_EQ(InterHostBackend({.several_hosts = true, .mpi_beside = true})->name, "gloo");
  EXPECT_EQ(InterHostBackend({.several_hosts = true, .over_mpi = true})->name, "mpi");
  for (uint32_t bits = 0; bits < 32; ++bits) {  // every combination of the other facts
    const BackendFacts facts = {
        true, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
    const auto connects = [&facts](const BackendRow& row) {
      return row.connects != nullptr && row.connects(facts);
    };
    EXPECT_EQ(std::ranges::count_if(BackendRows(), connects), 1) << bits;
    EXPECT_TRUE(connects(*InterHostBackend(facts))) << bits;
  }
  for (const BackendRow& row : BackendRows())
    EXPECT_EQ(row.connects != nullptr, row.open != nullptr) << row.name << ": both, or neither";
}

TEST(BackendList, FindsRowsByTheirNamesAlone) {
  for (const BackendRow& row : BackendRows()) EXPECT_EQ(FindBackend(row.name), &row);
  EXPECT_EQ(FindBackend("rocm"), nullptr);
  EXPECT_EQ(FindBackend(""), nullptr);
  EXPECT_EQ(FindBackend("shm")->built(), 1);
  EXPECT_EQ(FindBackend("mpi_threads")->built(), 0);
}

}  // namespace
}  // namespace hvd
