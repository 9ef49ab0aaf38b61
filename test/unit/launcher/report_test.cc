#include "launcher/job/report/report.h"

#include <gtest/gtest.h>

#include <csignal>

#include "launcher/job/job.h"
#include "launcher/job/report/job_result.h"

namespace hvd {
namespace {

JobState Failed(uint32_t size, uint32_t rank, ProcessEnd end, std::string last_words) {
  JobState state(*MakePlan({{"node1", size}}, size), {});
  Step(state, AgentIsReady{0}, {});
  for (uint32_t r = 0; r < size; ++r) {
    Step(state, WorkerStarted{r, static_cast<int32_t>(100 + r)}, {});
  }
  Step(state, WorkerExited{rank, static_cast<int32_t>(100 + rank), end, 1, std::move(last_words)},
       {});
  for (uint32_t r = 0; r < size; ++r) {
    Step(state, WorkerExited{r, static_cast<int32_t>(100 + r), {true, SIGTERM}, 2, ""}, {});
  }
  return state;
}

TEST(Report, NamesRankHostPidEndAndLastWords) {
  EXPECT_EQ(Report(Failed(3, 1, {false, 3}, "Traceback\nboom")),
            "hvdrun: rank 1 on host node1 (pid 101) failed: exit code 3.\n"
            "  Its last lines on stderr:\n"
            "    Traceback\n"
            "    boom\n"
            "  2 other ranks were ended because of it.\n");
}

TEST(Report, ATracebackThatTheUserSeesAboveIsNotRepeated) {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n";
  EXPECT_EQ(Report(Failed(2, 1, {false, 1}, traceback + "ValueError: no data\nof two lines"),
                   TracebackPlace::kAbove),
            "hvdrun: rank 1 on host node1 (pid 101) failed: exit code 1.\n"
            "  Its traceback is above; it ends with:\n"
            "    ValueError: no data\n"
            "    of two lines\n"
            "  1 other rank was ended because of it.\n");
  for (const std::string& other : {traceback, std::string("no traceback")}) {
    const JobState state = Failed(2, 1, {false, 1}, other);
    EXPECT_EQ(Report(state, TracebackPlace::kAbove), Report(state)) << other;
  }
}

TEST(Report, ControlCharactersOfTheLastWordsAreEscaped) {
  const std::string report = Report(
      Failed(1, 0, {false, 3}, "a\x1b[2A\x1b[2Kb\r\tc\x1b]0;title\x07\nf\xc3\xbcr \xc2\x9b\xff"));
  EXPECT_EQ(report,
            "hvdrun: rank 0 on host node1 (pid 100) failed: exit code 3.\n"
            "  Its last lines on stderr:\n"
            "    a\\x1b[2A\\x1b[2Kb\\x0d\tc\\x1b]0;title\\x07\n"
            "    f\xc3\xbcr \\xc2\\x9b\\xff\n");
}

TEST(Report, RanksThatFailedAlikeAreNamedAndNotRepeated) {
  JobState state(*MakePlan({{"node1", 4}}, 4), {});
  Step(state, AgentIsReady{0}, {});
  for (uint32_t r = 0; r < 4; ++r) Step(state, WorkerStarted{r, static_cast<int32_t>(100 + r)}, {});
  for (uint32_t r : {0U, 1U, 2U})
    Step(state, WorkerExited{r, 0, {false, 1}, 1 + r, "ImportError"}, {});
  Step(state, WorkerExited{3, 0, {true, SIGTERM}, 9, ""}, {});
  EXPECT_EQ(Report(state),
            "hvdrun: rank 0 on host node1 (pid 100) failed: exit code 1.\n"
            "  Its last lines on stderr:\n"
            "    ImportError\n"
            "  Ranks 1-2 failed with the same words.\n"
            "  1 other rank was ended because of it.\n");
}

// Ranks of stock Horovod or torch.distributed, of which no agent knows whose peer was lost.
TEST(Report, ARankThatRaisesForTheLossOfAPeerIsNotTheFirstCause) {
  constexpr const char* kPeerLost =
      "Traceback (most recent call last):\n  File \"train.py\", line 9\n"
      "horovod.common.exceptions.HorovodInternalError: Connection closed by peer\n";
  JobState state(*MakePlan({{"node1", 2}}, 2), {});
  Step(state, AgentIsReady{0}, {});
  for (uint32_t r = 0; r < 2; ++r) Step(state, WorkerStarted{r, static_cast<int32_t>(100 + r)}, {});
  Step(state, WorkerExited{0, 100, {false, 1}, 1, kPeerLost}, {});
  Step(state, WorkerExited{1, 101, {false, 5}, 2, ""}, {});
  EXPECT_EQ(FirstFailedRank(state), 1u);
  EXPECT_EQ(ExitCode(state), 5);
}

TEST(Report, NamesSignals) {
  EXPECT_EQ(Report(Failed(2, 0, {true, SIGKILL}, "")),
            "hvdrun: rank 0 on host node1 (pid 100) failed: signal 9 (SIGKILL), sent by a process, "
            "not by the OOM killer.\n"
            "  1 other rank was ended because of it.\n");
  EXPECT_EQ(DescribeEnd({true, 34}), "signal 34");
}

TEST(Report, TellsAKillForLackOfMemory) {
  JobState state(*MakePlan({{"node1", 1}}, 1), {});
  Step(state, AgentIsReady{0}, {});
  Step(state, WorkerStarted{0, 100}, {});
  Step(state, WorkerExited{0, 100, {true, SIGKILL}, 1, "", true}, {});
  EXPECT_EQ(
      Report(state),
      "hvdrun: rank 0 on host node1 (pid 100) failed: signal 9 (SIGKILL), most likely by the "
      "kernel for lack of memory: it ended a process there just before. Try fewer processes per "
      "host or smaller batches.\n");
}

TEST(Report, SaysWhatALostRankWasDoing) {
  JobState state(*MakePlan({{"node1", 1}}, 1), {});
  Step(state, AgentIsReady{0}, {});
  Step(state, WorkerStarted{0, 100}, {});
  Step(state, RankJoined{0}, {});
  Step(state, RankLost{0, 100, 1, 1, "it died", " while it waited for 'grad'"}, {});
  Step(state, WorkerExited{0, 100, {false, 4}, 1, "", false}, {});
  EXPECT_EQ(Report(state),
            "hvdrun: rank 0 on host node1 (pid 100) failed: exit code 4.\n"
            "  It had called hvd.init() and not hvd.shutdown() while it waited for 'grad'.\n");
}

TEST(Report, NamesRanksThatAreStoppedAndNotTheOneThatWaited) {
  for (bool stopped : {true, false}) {
    JobState state(*MakePlan({{"node1", 1}, {"node2", 1}}, 2), {});
    for (uint32_t r : {0u, 1u}) Step(state, AgentIsReady{r}, {});
    for (uint32_t r : {0u, 1u}) Step(state, WorkerStarted{r, static_cast<int32_t>(100 + r)}, {});
    for (uint32_t r : {0u, 1u}) Step(state, RankJoined{r}, {});
    Step(state, GenerationEnding{1, {0, "rank 0 has waited 5 s in 'x' for rank 1"}}, {});
    if (stopped) Step(state, RankStopped{1}, {});
    Step(state, WorkerExited{0, 100, {false, 1}, 1, "Traceback"}, {});
    EXPECT_EQ(Report(state),
              stopped ? "hvdrun: rank 1 on host node2 (pid 101) is stopped by a signal.\n"
                        "  So rank 0 has waited 5 s in 'x' for rank 1.\n"
                        "  All ranks were ended.\n"
                      : "hvdrun: rank 0 has waited 5 s in 'x' for rank 1.\n"
                        "  All ranks were ended.\n");
  }
}

TEST(Report, IsSilentWhenAllWentWell) {
  JobState state(*MakePlan({{"node1", 1}}, 1), {});
  Step(state, AgentIsReady{0}, {});
  EXPECT_EQ(Report(state), "");
}

TEST(Report, NamesAHostThatWasLost) {
  JobState state(*MakePlan({{"node1", 1}}, 1), {});
  Step(state, AgentIsReady{0}, {});
  Step(state, AgentLost{0, "the agent was ended by signal 9 (Killed)"}, {});
  EXPECT_EQ(Report(state),
            "hvdrun: host node1 was lost: the agent was ended by signal 9 (Killed). All ranks were "
            "ended.\n");
}

}  // namespace
}  // namespace hvd
