// The command line for a node of Slurm's allocation, and the meaning of the end of srun.
#include "launcher/channels/srun_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kExit1 = 1 << 8, kKilled = 137 << 8;

TEST(SrunCommand, IsAStepOfOneTaskThatSharesTheNodeAndKeepsNoBytesBack) {
  EXPECT_THAT(SrunCommand({"n1", {}}, {"SLURM_NTASKS"}, "exec x"),
              ElementsAre("env", "-u", "SLURM_NTASKS", "SLURM_OVERLAP=1", "srun", "--nodes=1",
                          "--ntasks=1", "--ntasks-per-node=1", "--nodelist=n1", "--cpu-bind=none",
                          "--mpi=none", "--export=ALL", "--unbuffered", "sh", "-c", "exec x"));
  EXPECT_THAT(SrunCommand({"n1", 2}, {}, "exec x"), Contains("--het-group=2"));
}

TEST(SrunStepCommand, IsOneTaskOnEachNodeWhoseEndLeavesTheOthersAlone) {
  EXPECT_THAT(SrunStepCommand({{"n1", {}}, {"n7", {}}}, {"SLURM_NTASKS"}, "exec x"),
              ElementsAre("env", "-u", "SLURM_NTASKS", "SLURM_OVERLAP=1", "srun", "--nodes=2",
                          "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n1,n7",
                          "--cpu-bind=none", "--mpi=none", "--export=ALL", "--no-kill",
                          "--kill-on-bad-exit=0", "--wait=0", "sh", "-c", "exec x"));
  EXPECT_THAT(SrunStepCommand({{"n1", 2}, {"n2", 2}}, {}, "exec x"), Contains("--het-group=2"));
}

TEST(ShareSteps, PutsTheNodesOfAComponentTogether) {
  const SrunNode a{"n1", {}}, b{"n2", {}}, c{"n3", 1}, d{"n4", 1}, alone{"n5", 2};
  EXPECT_THAT(ShareSteps({a, std::nullopt, b, c, alone, d}, 1000),
              ElementsAre(0, std::nullopt, 0, 1, std::nullopt, 1));
  EXPECT_THAT(ShareSteps({a}, 1000), ElementsAre(std::nullopt));
  EXPECT_THAT(ShareSteps({}, 1000), ElementsAre());
}

TEST(ShareSteps, FillsSeveralStepsAboutEqually) {
  const std::vector<std::optional<SrunNode>> nodes(5, SrunNode{"n", {}});
  EXPECT_THAT(ShareSteps(nodes, 5), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(ShareSteps(nodes, 4), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(ShareSteps(nodes, 2), ElementsAre(0, 0, 1, 1, 2));
}

TEST(ParseSrunOutput, AreAboutTheNodesThatTheyName) {
  struct Row {
    const char* said;
    const char* reason;  // of n2
  };
  const std::string cancelled = "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026 ***\n";
  for (const Row& row : {
           Row{"srun: error: n2: task 1: Exited with exit code 137\n",
               "the agent was ended by signal 9"},
           {"srun: error: n[1-3]: tasks 0-2: Exited with exit code 3\n",
            "the agent ended with exit code 3"},
           {"srun: error: n2: task 1: Killed\n", "the agent was ended: Killed"},
           {"srun: error: n2: task 1: Out Of Memory\n", "Slurm ended the step: out of memory"},
           {"hello\nsrun: error: Node failure on n2\n", "Slurm ended the step: node failure"},
       }) {
    const std::optional<ChannelEnd> end = ParseSrunOutput(row.said, "n2");
    ASSERT_TRUE(end) << row.said;
    EXPECT_EQ(end->stage, ChannelStage::kRunning);
    EXPECT_EQ(end->reason, row.reason);
    EXPECT_FALSE(ParseSrunOutput(row.said, "n4")) << row.said;
    EXPECT_EQ(ParseSrunOutput(cancelled + row.said, "n2")->reason,
              "Slurm ended the step: it was cancelled");
  }
  const std::string terminated = "srun: error: n2: task 1: Terminated\n";
  EXPECT_FALSE(ParseSrunOutput(terminated, "n2")) << "Slurm may say why a moment later";
  EXPECT_EQ(ParseSrunOutput(cancelled + terminated, "n2")->reason,
            "Slurm ended the step: it was cancelled");
  for (const char* said :
       {"", "srun: error: n2: task 1: Exited with exit code 0\n", "srun: error: n2\n",
        "srun: error: n[2: task 1: Killed\n", "n2: task 1: Killed\n", "srun: error: : task: x\n"})
    EXPECT_FALSE(ParseSrunOutput(said, "n2")) << said;
}

TEST(ReadSrunStepEnd, IsForEachNodeWhatItsTaskDid) {
  const CommandEnd one_failed{kKilled, "srun: error: n2: task 1: Exited with exit code 137\n",
                              true};
  EXPECT_EQ(ReadSrunStepEnd(one_failed, "n2").reason, "the agent was ended by signal 9");
  EXPECT_EQ(ReadSrunStepEnd(one_failed, "n1").reason, "");
  EXPECT_EQ(ReadSrunStepEnd({0, "", true}, "n1").reason, "");
  EXPECT_EQ(ReadSrunStepEnd({9, "", true}, "n1").reason, "srun was ended by signal 9");
  EXPECT_EQ(ReadSrunStepEnd({143 << 8, "srun: error: n2: task 1: Terminated\n", true}, "n2").reason,
            "Slurm ended the step, or somebody its agent: signal 15 (SIGTERM)");
  const std::string aborted = "srun: Job step aborted: Waiting up to 32 seconds\n";
  EXPECT_EQ(ReadSrunStepEnd({kExit1, aborted, true}, "n1").reason, "Slurm ended the step");
  EXPECT_EQ(
      ReadSrunStepEnd({kExit1, aborted + "*** STEP 5.0 ON n1 CANCELLED AT 2026 ***\n", true}, "n1")
          .reason,
      "Slurm ended the step: it was cancelled");
  const ChannelEnd never = ReadSrunStepEnd({kExit1, "srun: error: no such node\n", false}, "n1");
  EXPECT_EQ(never.stage, ChannelStage::kExec);
  EXPECT_THAT(never.reason, HasSubstr("no such node"));
}

TEST(ReadSrunEnd, NamesWhatSlurmDid) {
  struct Row {
    CommandEnd end;
    ChannelStage stage;
    const char* reason;
  };
  const Row rows[] = {
      {{kKilled,
        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT "
        "***\n",
        true},
       ChannelStage::kRunning,
       "Slurm ended the step: time limit"},
      {{kKilled, "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n",
        true},
       ChannelStage::kRunning,
       "Slurm ended the step: it was cancelled"},
      {{143 << 8, "srun: Job step aborted: Waiting up to 32 seconds\n", true},
       ChannelStage::kRunning,
       "Slurm ended the step"},
      {{143 << 8, "srun: error: n1: task 0: Terminated\n", true},
       ChannelStage::kRunning,
       "Slurm ended the step, or somebody its agent: signal 15 (SIGTERM)"},
      {{kExit1, "srun: error: Node failure on n2\n", true},
       ChannelStage::kRunning,
       "Slurm ended the step: node failure"},
      {{kExit1,
        "srun: error: Unable to create step for job 5: Job/step already completing or "
        "completed\n",
        false},
       ChannelStage::kExec,
       "the allocation is over"},
      {{kExit1, "srun: error: Requested node configuration is not available\n", false},
       ChannelStage::kExec,
       "srun ended with exit code 1 before the agent said a word: srun: error: Requested node "
       "configuration is not available; --launcher ssh goes another way"},
      {{kKilled, "", true}, ChannelStage::kRunning, "the agent was ended by signal 9"},
      {{9, "", false}, ChannelStage::kExec, "srun was ended by signal 9"},
  };
  for (const Row& row : rows) {
    const ChannelEnd end = ReadSrunEnd(row.end);
    EXPECT_EQ(end.stage, row.stage) << row.reason;
    EXPECT_THAT(end.reason, HasSubstr(row.reason));
  }
  EXPECT_EQ(ReadSrunEnd({0, "", true}).reason, "");
}

}  // namespace
}  // namespace hvd
