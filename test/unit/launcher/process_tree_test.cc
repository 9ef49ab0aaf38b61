#include "launcher/process/process_tree.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Pids = std::set<pid_t>;

ProcessInfo Process(pid_t pid, pid_t parent) {
  return {.pid = pid, .parent = parent, .state = 'S'};
}

constexpr pid_t kSelf = 10;
// 11 is this process's own child, 20 one from before; 12 and 30 came when their parents ended.
const std::vector<ProcessInfo> kAll = {Process(10, 1),  Process(11, 10), Process(111, 11),
                                       Process(12, 10), Process(20, 10), Process(21, 20),
                                       Process(30, 10), Process(31, 30), Process(40, 1)};
bool Is12(pid_t pid) { return pid == 12; }

TEST(SparedOf, WithoutStrangersEveryDescendantIsTheJobs) {
  EXPECT_EQ(SparedOf(kSelf, {}, kAll, Is12), Pids{});
  EXPECT_EQ(SparedOf(kSelf, {.processes = {40}, .trees = {11}}, kAll, Is12), (Pids{40, 11, 111}));
}

TEST(SparedOf, WithStrangersOnlyItsOwnAndWhatCarriesTheIdAreTheJobs) {
  Spared spared;
  spared.own = {11};
  EXPECT_EQ(SparedOf(kSelf, spared, kAll, Is12), (Pids{20, 21, 30, 31}));
  spared.own = std::vector<pid_t>();
  EXPECT_EQ(SparedOf(kSelf, spared, kAll, Is12), (Pids{11, 111, 20, 21, 30, 31}));
}

}  // namespace
}  // namespace hvd
