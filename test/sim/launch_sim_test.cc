// The costs of a job of 64, 1,024 and 10,000 hosts for the driver and the agents, with the tree and
// without.
#include "test/sim/launch_sim.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "launcher/job/report/job_result.h"

namespace hvd {
namespace {

struct Row {
  uint32_t hosts = 0;
  LaunchSimPhase start, generation, failure;
  double kilobytes_per_host = 0;
};

double Milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

Row RunJob(uint32_t hosts, uint32_t radix) {
  LaunchSimOptions options;
  options.hosts = hosts;
  options.radix = radix;
  Row row;
  row.hosts = hosts;
  const size_t before = ::mallinfo2().uordblks;
  LaunchSim sim(options);
  row.start = sim.Start();
  EXPECT_EQ(sim.job().phase, JobPhase::kRunning);
  EXPECT_EQ(sim.job().generation, 1U);
  EXPECT_EQ(sim.connected(), hosts) << "a leader does not know all its partners";
  row.kilobytes_per_host = static_cast<double>(::mallinfo2().uordblks - before) / 1024 / hosts;
  row.generation = sim.NextGeneration();
  EXPECT_EQ(sim.job().generation, 2U);
  EXPECT_EQ(sim.connected(), hosts);
  const uint32_t rank = hosts * options.ranks_per_host / 2;
  row.failure = sim.Fail(rank, 7);
  EXPECT_EQ(FirstFailedRank(sim.job()), rank);
  EXPECT_EQ(ExitCode(sim.job()), 7);
  return row;
}

void Print(const char* how, const Row& row) {
  std::printf(
      "%6u %-5s | %9.0f ms %8llu %7llu %6.0f | %9.0f ms %8llu %7llu %6.0f | %7.0f ms | %5.1f kB\n",
      row.hosts, how, Milliseconds(row.start.took),
      static_cast<unsigned long long>(row.start.driver_messages),
      static_cast<unsigned long long>(row.start.busiest_messages), row.start.mean_messages,
      Milliseconds(row.generation.took),
      static_cast<unsigned long long>(row.generation.driver_messages),
      static_cast<unsigned long long>(row.generation.busiest_messages),
      row.generation.mean_messages, Milliseconds(row.failure.took), row.kilobytes_per_host);
}

constexpr uint32_t kFlat = 1'000'000;

TEST(LaunchSim, MessagesAndTimeGrowWithTheLogarithmOfTheNumberOfHosts) {
  std::printf(
      "8 ranks a host; 20 us + 1 us/entry + 2 us/KiB per message and side, 200 us per hop\n"
      " hosts       | start: time, messages of the driver, of the busiest agent, of the mean one | "
      "another generation: the same | failure | memory per host\n");
  std::vector<Row> tree;
  Row flat;
  for (uint32_t hosts : {64u, 1024u, 10'000u}) {
    if (hosts <= 1024 || std::getenv("HVD_SOAK") != nullptr) {
      const Row row = RunJob(hosts, kFlat);
      Print("flat", row);
      if (hosts == 1024) flat = row;
    }
    tree.push_back(RunJob(hosts, 32));
    Print("tree", tree.back());
  }
  const Row& some = tree[1];
  const Row& many = tree[2];
  const double log = std::log2(many.hosts) / std::log2(some.hosts);
  // The messages that one agent handles: as many partners as the logarithm says.
  EXPECT_LT(many.generation.mean_messages, some.generation.mean_messages * log * 1.25);
  // Ten times the hosts are far from ten times the work of the driver.
  EXPECT_LT(static_cast<double>(many.generation.driver_messages),
            static_cast<double>(some.generation.driver_messages) * 6);
  EXPECT_LT(Milliseconds(some.generation.took) * 4, Milliseconds(flat.generation.took));
  EXPECT_LT(many.kilobytes_per_host, some.kilobytes_per_host * log * 1.25);
}

// Every leader has a new address in every generation and half of them are wanted in the other half
// of the hosts, so the driver passes at least each address on once: that part stays linear. It is
// to be far less than what each leader asks for, and the rest a logarithm.
TEST(LaunchSim, TheDriverHandlesFewEntriesForEachHost) {
  for (uint32_t hosts : {64u, 256u, 1024u}) {
    const Row row = RunJob(hosts, 32);
    const LaunchSimPhase& generation = row.generation;
    std::printf(
        "%6u hosts: the driver handles %.1f entries and %.0f bytes for each, an agent %.0f "
        "messages and %.0f bytes\n",
        hosts, static_cast<double>(generation.driver_entries) / hosts,
        static_cast<double>(generation.driver_bytes) / hosts, generation.mean_messages,
        generation.mean_bytes);
    EXPECT_GE(generation.driver_entries, hosts);
    EXPECT_LT(generation.driver_entries, 10 * hosts);
  }
}

TEST(LaunchSim, AFailureComesThroughAnyRadix) {
  for (uint32_t radix : {2u, 3u, 16u}) {
    for (uint32_t hosts : {2u, 17u, 100u}) (void)RunJob(hosts, radix);
  }
}

}  // namespace
}  // namespace hvd
