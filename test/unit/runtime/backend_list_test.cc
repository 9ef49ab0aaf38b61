#include "runtime/api/backend_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  for (const char* name : {"gloo", "mpi"}) EXPECT_NE(FindBackend(name)->open, nullptr) << name;
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
