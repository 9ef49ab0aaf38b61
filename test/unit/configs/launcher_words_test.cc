// The options of other launchers: each is accepted or answered by name, and none misleads.
#include "configs/launcher_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "configs/command_line.h"
#include "configs/horovod_settings.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Args = std::vector<std::string>;

Result<ParsedCommandLine> ParseWords(Args args) {
  return ParseCommandLine(
      args, [](const char*) { return std::optional<std::string>(); },
      [](const std::string&) -> Result<std::string> { return InvalidArgument("no file"); },
      Verb::kRun, {}, [](std::string_view kind) -> uint32_t { return kind == "gpu" ? 0 : 6; });
}

struct Typed {
  std::string_view launcher;
  Args words;
};

// What people type, with the values that they type.
const Typed kTyped[] = {
    {"torchrun", {"--nproc-per-node", "auto"}},
    {"torchrun", {"--nproc_per_node=4"}},
    {"torchrun", {"--nnodes", "1"}},
    {"torchrun", {"--nnodes=1:4"}},
    {"torchrun", {"--node_rank", "1", "--nnodes", "2"}},
    {"torchrun", {"--standalone"}},
    {"torchrun", {"--max-restarts", "3"}},
    {"torchrun", {"--max_restarts=3"}},
    {"torchrun", {"--rdzv-backend", "c10d"}},
    {"torchrun", {"--rdzv_conf", "timeout=900"}},
    {"torchrun", {"--monitor-interval", "5"}},
    {"torchrun", {"--start-method", "spawn"}},
    {"torchrun", {"--role", "trainer"}},
    {"torchrun", {"-m"}},
    {"torchrun", {"--no-python"}},
    {"torchrun", {"--redirects", "3"}},
    {"torchrun", {"-t", "3"}},
    {"torchrun", {"--master_port", "29500"}},
    {"torchrun", {"--local-ranks-filter", "0"}},
    {"mpirun", {"-n", "4"}},
    {"mpirun", {"--host", "a:1"}},
    {"mpirun", {"-host", "a:1"}},
    {"mpirun", {"--machinefile", "hosts"}},
    {"mpirun", {"--oversubscribe"}},
    {"mpirun", {"--allow-run-as-root"}},
    {"mpirun", {"--mca", "btl", "tcp,self"}},
    {"mpirun", {"-mca", "btl", "tcp,self"}},
    {"mpirun", {"--map-by", "ppr:2:socket"}},
    {"mpirun", {"--rank-by", "core"}},
    {"mpirun", {"--report-bindings"}},
    {"mpirun", {"--tag-output"}},
    {"mpirun", {"--timestamp-output"}},
    {"mpirun", {"--wdir", "/tmp"}},
    {"mpirun", {"-wdir", "/tmp"}},
    {"mpirun", {"--display-map"}},
    {"mpirun", {"--npernode", "2"}},
    {"mpirun", {"--quiet"}},
    {"mpirun", {"-genv", "A", "1"}},
    {"mpirun", {"--env", "X=1"}},
    {"srun", {"-N", "2"}},
    {"srun", {"--ntasks=4"}},
    {"srun", {"--ntasks-per-node", "2"}},
    {"srun", {"--cpus-per-task=4"}},
    {"srun", {"--gpus-per-task=1"}},
    {"srun", {"--mpi=pmix"}},
    {"srun", {"--label"}},
    {"srun", {"--kill-on-bad-exit=1"}},
    {"srun", {"--export=ALL,X=1"}},
    {"srun", {"--chdir", "/tmp"}},
    {"srun", {"--partition=gpu"}},
    {"srun", {"--error=err.txt"}},
    {"srun", {"--time=10"}},
    {"srun", {"--nodelist", "a,b"}},
    {"accelerate", {"--num_processes", "4"}},
    {"accelerate", {"--num_machines=2"}},
    {"accelerate", {"--machine_rank", "0"}},
    {"accelerate", {"--main_process_port", "29501"}},
    {"accelerate", {"--mixed_precision", "bf16"}},
    {"accelerate", {"--multi_gpu"}},
    {"accelerate", {"--config_file", "a.yaml"}},
    {"horovodrun", {"--gloo"}},
    {"horovodrun", {"--cycle-time-ms", "5"}},
    {"horovodrun", {"--slots", "2"}},
    {"horovodrun", {"--disable-cache"}},
    {"deepspeed", {"--num_gpus", "4"}},
    {"deepspeed", {"--num_nodes=2"}},
    {"deepspeed", {"--include", "a@b:0,1"}},
    {"deepspeed", {"--no_local_rank"}},
    {"deepspeed", {"--launcher_args", "-v"}},
};

bool CountsRanks(const Typed& typed) {
  const LauncherWord* word = FindLauncherWord(typed.words[0].substr(0, typed.words[0].find('=')));
  return word != nullptr && word->meaning == WordMeaning::kAlias && word->text == "-np";
}

TEST(LauncherWords, EachIsAcceptedOrAnsweredByNameAndNoneMisleads) {
  std::set<std::string_view> launchers;
  size_t accepted = 0, answered = 0;
  for (const Typed& typed : kTyped) {
    launchers.insert(typed.launcher);
    Args args = typed.words;
    if (!CountsRanks(typed)) args.insert(args.begin(), {"-np", "2"});
    args.emplace_back("train");
    const Result<ParsedCommandLine> line = ParseWords(args);
    const std::string shown = std::string(typed.launcher) + " " + typed.words[0];
    if (line.ok()) {
      ++accepted;
      EXPECT_THAT(line->command, ElementsAre("train")) << shown;
      continue;
    }
    const std::string& message = line.status().message();
    const std::string word = typed.words[0].substr(0, typed.words[0].find('='));
    ++answered;
    EXPECT_TRUE(message.starts_with(word)) << shown << ": " << message;
    EXPECT_THAT(message, HasSubstr(std::string(" is an option of "))) << shown;
    EXPECT_THAT(message, HasSubstr(std::string(typed.launcher))) << shown;
    EXPECT_EQ(message.find("did you mean"), std::string::npos) << shown;
  }
  EXPECT_EQ(launchers.size(), 6u);
  EXPECT_GE(std::size(kTyped), 60u);
  EXPECT_GE(accepted, 30u);
  EXPECT_EQ(accepted + answered, std::size(kTyped));
}

TEST(LauncherWords, AnAliasIsAFlagOfOursAndNoWordHidesOne) {
  std::set<std::string> ours;
  for (const Row& row : SettingRows()) {
    for (std::string_view flag : row.flags) ours.emplace(flag);
  }
  for (const HorovodSetting& setting : HorovodSettings()) {
    for (std::string_view flag : setting.row.flags) ours.emplace(flag);
  }
  std::set<std::string> seen;
  for (const LauncherWord& word : LauncherWords()) {
    EXPECT_TRUE(seen.insert(std::string(word.word)).second) << word.word << " comes twice";
    EXPECT_FALSE(ours.contains(std::string(word.word))) << word.word;
    if (word.meaning == WordMeaning::kAlias) {
      EXPECT_TRUE(ours.contains(std::string(word.text))) << word.word;
    }
    EXPECT_FALSE(word.text.ends_with(".")) << word.word;
  }
}

// Options that an answer names exist.
TEST(LauncherWords, AnswersNameOptionsOfOurs) {
  std::set<std::string> ours = {"--jobid", "--pty", "--mca", "--mpi-args", "--tune"};
  for (const Row& row : SettingRows()) {
    for (std::string_view flag : row.flags) ours.emplace(flag);
  }
  for (const LauncherWord& word : LauncherWords()) {
    std::string text(word.text);
    for (size_t at = text.find(" --"); at != std::string::npos; at = text.find(" --", at + 1)) {
      const size_t begin = at + 1;
      const std::string flag =
          text.substr(begin, text.find_first_not_of("-abcdefghijklmnopqrstuvwxyz", begin) - begin);
      EXPECT_TRUE(ours.contains(flag)) << word.word << " names " << flag;
    }
  }
}

TEST(LauncherWords, MeanWhatTheyMeanThere) {
  const auto settings = [](Args args) {
    args.emplace_back("train");
    const Result<ParsedCommandLine> line = ParseWords(args);
    EXPECT_TRUE(line.ok()) << line.status().message();
    return line.ok() ? line->settings : Settings();
  };
  EXPECT_EQ(settings({"-n", "3"}).num_proc, 3);
  EXPECT_EQ(settings({"--num_processes", "3"}).num_proc, 3);
  EXPECT_EQ(settings({"--nproc-per-node", "auto"}).num_proc, 6);
  EXPECT_EQ(settings({"--nproc-per-node=cpu"}).num_proc, 6);
  EXPECT_EQ(settings({"-np", "1", "--host", "a:1"}).hosts, "a:1");
  EXPECT_EQ(settings({"-np", "1", "--machinefile", "f"}).hostfile, "f");
  EXPECT_EQ(settings({"-np", "1", "-wdir", "/x"}).chdir, "/x");
  EXPECT_TRUE(settings({"-np", "1", "-m"}).module);
  EXPECT_TRUE(settings({"-np", "1", "--do-not-launch"}).dry_run);
  const Settings restarts = settings({"-np", "2", "--max-restarts", "3"});
  EXPECT_TRUE(IsElastic(restarts));
  EXPECT_EQ(restarts.max_failures, "3");
  EXPECT_FALSE(IsElastic(settings({"-np", "2", "--max-restarts", "0"})));
}

TEST(LauncherWords, NoGpuIsNoNumberOfProcesses) {
  EXPECT_THAT(ParseWords({"--nproc-per-node", "gpu", "train"}).status().message(),
              HasSubstr("this machine has no GPU"));
  EXPECT_THAT(ParseWords({"--nproc-per-node", "all", "train"}).status().message(),
              HasSubstr("--nproc-per-node all is not a whole number"));
}

TEST(LauncherWords, OurAbbreviationsStayAndTheirWordsHaveNone) {
  EXPECT_EQ(ParseWords({"-np", "1", "--output-f", "d", "a"})->settings.output_filename, "d");
  EXPECT_THAT(ParseWords({"-np", "1", "--oversub", "a"}).status().message(),
              HasSubstr("unknown option"));
  // --error-file and --env-file would be meant by these.
  EXPECT_THAT(ParseWords({"-np", "1", "--error", "x", "a"}).status().message(),
              HasSubstr("of srun"));
  EXPECT_THAT(ParseWords({"-np", "1", "--env", "X=1", "a"}).status().message(),
              HasSubstr("say -x NAME=value"));
  // A flag for tests is neither meant by an abbreviation nor proposed.
  EXPECT_THAT(ParseWords({"-np", "1", "--hosts-p", "2", "a"}).status().message(),
              HasSubstr("unknown option"));
}

TEST(LauncherWords, CountOfOneHostIsThatOfEachHostOfAnAllocation) {
  int asked = 0;
  const auto line = ParseCommandLine(
      {"--nproc-per-node", "4", "train"}, [](const char*) { return std::optional<std::string>(); },
      [](const std::string&) -> Result<std::string> { return InvalidArgument("no file"); },
      Verb::kRun,
      [&](const Settings& settings) -> Result<std::optional<AllocatedHosts>> {
        asked = settings.slots_per_host;
        return std::optional(
            AllocatedHosts{"Slurm job 7", "", "a:4,b:4", 8, RemoteLauncher::kSrun, ""});
      });
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(line->settings.num_proc, 8);
}

}  // namespace
}  // namespace hvd
