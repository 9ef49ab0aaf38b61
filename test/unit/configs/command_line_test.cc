#include "configs/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using Args = std::vector<std::string>;
using Env = std::map<std::string, std::string>;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Result<ParsedCommandLine> Parse(const Args& args, const Env& env = {},
                                const std::string& yaml = "") {
  auto lookup = [&](const char* name) -> std::optional<std::string> {
    auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  };
  auto read = [&](const std::string& path) -> Result<std::string> {
    if (path == "job.yaml") return yaml;
    return InvalidArgument("no file " + path);
  };
  return ParseCommandLine(args, lookup, read);
}

// In an allocation of two hosts with two slots each.
Result<ParsedCommandLine> ParseInAllocation(const Args& args, const AllocatedHosts& allocated) {
  return ParseCommandLine(
      args, [](const char*) { return std::optional<std::string>(); },
      [](const std::string& path) -> Result<std::string> { return InvalidArgument(path); },
      Verb::kRun,
      [&](const Settings&) -> Result<std::optional<AllocatedHosts>> {
        return std::optional<AllocatedHosts>(allocated);
      });
}
const AllocatedHosts kTwoHosts = {
    "Slurm job 7", "Slurm job 7 gives 4 slots", "a:2,b:2", 4, RemoteLauncher::kSrun, ""};

TEST(Allocation, NamesWhatNobodySaid) {
  const auto line = ParseInAllocation({"true"}, kTwoHosts);
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->settings.hosts, "a:2,b:2");
  EXPECT_EQ(line->settings.num_proc, 4);
  EXPECT_EQ(line->settings.launcher, RemoteLauncher::kSrun);
  EXPECT_THAT(line->notes, ElementsAre("Slurm job 7 gives 4 slots"));
  EXPECT_EQ(ParseInAllocation({"-np", "3", "true"}, kTwoHosts)->settings.num_proc, 3);
  EXPECT_EQ(ParseInAllocation({"--launcher", "ssh", "true"}, kTwoHosts)->settings.launcher,
            RemoteLauncher::kSsh);
  const auto shown = ParseInAllocation({"--print-config"}, kTwoHosts);
  EXPECT_THAT(shown->text, ContainsRegex("hosts +a:2,b:2 +.*Slurm job 7"));
}

TEST(Allocation, GivesWayToWhatWasSaid) {
  for (const Args& args : {Args{"-H", "c:1"}, Args{"--hostfile", "f"},
                           Args{"--allocation", "never"}, Args{"--host-discovery-script", "x"}}) {
    Args all = {"-np", "1"};
    all.insert(all.end(), args.begin(), args.end());
    all.push_back("true");
    const auto line = ParseInAllocation(all, kTwoHosts);
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_NE(line->settings.hosts, "a:2,b:2") << args[0];
    EXPECT_THAT(line->notes, IsEmpty());
  }
  EXPECT_THAT(ParseInAllocation({"--allocation", "never", "true"}, kTwoHosts).status().message(),
              HasSubstr("-np is missing"));
}

TEST(Allocation, WithoutHostsMakesTheNumberOptional) {
  const auto line =
      ParseInAllocation({"true"}, {"LSF job 5", "x", "", 3, RemoteLauncher::kAuto, ""});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->settings.hosts, "");
  EXPECT_EQ(line->settings.num_proc, 3);
}

std::string ErrorOf(const Args& args, const Env& env = {}, const std::string& yaml = "") {
  Result<ParsedCommandLine> line = Parse(args, env, yaml);
  if (line.ok()) return "ok";
  EXPECT_EQ(line.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(line.status().message().find('\n'), std::string::npos);
  return line.status().message();
}

TEST(CommandLine, FillsSettingsAndLeavesTheCommandAlone) {
  Result<ParsedCommandLine> line = Parse({"-np", "4", "--verbose", "python", "t.py", "--help"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, Action::kRun);
  EXPECT_EQ(line->settings.num_proc, 4);
  EXPECT_TRUE(line->settings.verbose);
  EXPECT_EQ(line->settings.log_level, LogLevel::kWarning);
  EXPECT_EQ(line->settings.start_timeout_seconds, 30);
  EXPECT_EQ(line->settings.terminate_grace_seconds, 3);
  EXPECT_EQ(line->settings.driver_grace_seconds, -1) << "not said";
  EXPECT_THAT(line->command, ElementsAre("python", "t.py", "--help"));
  EXPECT_THAT(line->warnings, IsEmpty());
  EXPECT_THAT(line->settings.worker_environment, IsEmpty());
}

TEST(CommandLine, UsageErrorsNameTheValueAndWhatWouldWork) {
  struct Case {
    Args args;
    std::string_view message;
  };
  const Case cases[] = {
      {{}, "-np is missing: say the number of processes, for example hvdrun -np 2 python train.py"},
      {{"python"},
       "-np is missing: say the number of processes, for example hvdrun -np 2 python train.py"},
      {{"run", "-np", "2", "python"},
       "-np is missing: say the number of processes, for example hvdrun -np 2 python train.py. -np "
       "behind the command 'run' is an argument of it; options of hvdrun stand in front of the "
       "command"},
      {{"-np", "0", "a"},
       "-np 0 is out of range: the number of processes is 1 to 1000000, try -np 2"},
      {{"-np", "x", "a"},
       "-np x is not a whole number: the number of processes is 1 to 1000000, try -np 2"},
      {{"--num-proc=1000001", "a"},
       "--num-proc 1000001 is out of range: the number of processes is 1 to 1000000, try "
       "--num-proc 2"},
      {{"-np", "2"},
       "there is no command to start: put it after the options, for example hvdrun -np 2 python "
       "train.py"},
      {{"-np", "2", ""},
       "the command '' is an empty text: name a program, for example hvdrun -np 2 python train.py"},
      {{"-np", "2", "--log-level", "loud", "a"},
       "--log-level loud is not one of the choices: the log level is TRACE, DEBUG, INFO, WARNING, "
       "ERROR or FATAL, try --log-level INFO"},
      {{"-np", "2", "--config-file", "gone.yaml", "a"}, "no file gone.yaml"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(c.args), c.message);
}

TEST(CommandLine, FlagBeatsVariableBeatsFileBeatsDefault) {
  const std::string yaml = "logging: {level: debug}\n";
  const Env env{{"HOROVOD_LOG_LEVEL", "info"}};
  const Args with_file{"-np", "1", "--config-file", "job.yaml", "a"};
  auto level = [](const Result<ParsedCommandLine>& line) {
    EXPECT_TRUE(line.ok()) << line.status().message();
    return line.ok() ? line->settings.log_level : LogLevel::kFatal;
  };
  EXPECT_EQ(level(Parse({"-np", "1", "a"})), LogLevel::kWarning);
  EXPECT_EQ(level(Parse(with_file, {}, yaml)), LogLevel::kDebug);
  EXPECT_EQ(level(Parse(with_file, env, yaml)), LogLevel::kInfo);
  Args with_flag = with_file;
  with_flag.insert(with_flag.begin(), {"--log-level", "trace", "--log-level", "error"});
  EXPECT_EQ(level(Parse(with_flag, env, yaml)), LogLevel::kError);
}

Result<ParsedCommandLine> ParseStanding(const Args& args, const StandingSettings& standing,
                                        const Env& env = {}) {
  auto lookup = [&](const char* name) -> std::optional<std::string> {
    auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  };
  auto read = [](const std::string&) -> Result<std::string> {
    return std::string("launcher: {ssh_port: 3}");
  };
  return ParseCommandLine(args, lookup, read, Verb::kRun, {}, {}, standing);
}
const StandingSettings kUserAndMachine = {
    {{"/home/a/config.yaml", "launcher: {ssh_port: 2, num_proc: 5}"},
     {"/etc/config.yaml", "launcher: {ssh_port: 1}\nlogging: {level: ERROR}"}},
    {},
    {}};

TEST(CommandLine, FilesOfUserAndMachineAreWeakerThanAFileThatIsNamed) {
  EXPECT_EQ(ParseStanding({"true"}, kUserAndMachine)->settings.ssh_port, 2);
  EXPECT_EQ(ParseStanding({"true"}, kUserAndMachine)->settings.num_proc, 5);
  EXPECT_EQ(ParseStanding({"--config-file", "f", "true"}, kUserAndMachine)->settings.ssh_port, 3);
  EXPECT_EQ(
      ParseStanding({"true"}, kUserAndMachine, {{"HVDRUN_CONFIG_FILE", "f"}})->settings.ssh_port,
      3);
  EXPECT_EQ(ParseStanding({"-p", "4", "true"}, kUserAndMachine)->settings.ssh_port, 4);
  const auto none = ParseStanding({"--no-standing-config", "-np", "1", "true"}, kUserAndMachine);
  EXPECT_EQ(none->settings.ssh_port, 0);
  EXPECT_THAT(ParseStanding({"--print-config"}, kUserAndMachine)->text,
              ContainsRegex("ssh-port +2 +/home/a/config.yaml:1"));
}

TEST(CommandLine, EverySettingHasAVariable) {
  EXPECT_EQ(Parse({"true"}, {{"HVDRUN_NUM_PROC", "3"}})->settings.num_proc, 3);
  EXPECT_EQ(Parse({"true"}, {{"HVDRUN_NUM_PROC", "3"}, {"HVDRUN_STALL_CHECK", "off"}})
                ->settings.stall_check,
            false);
  const auto level =
      Parse({"-np", "1", "true"}, {{"HVDRUN_LOG_LEVEL", "ERROR"}, {"HOROVOD_LOG_LEVEL", "DEBUG"}});
  EXPECT_EQ(level->settings.log_level, LogLevel::kError);
  EXPECT_THAT(level->settings.worker_environment, Contains("HOROVOD_LOG_LEVEL=ERROR"));
  EXPECT_THAT(Parse({"true"}, {{"HVDRUN_NUM_PROC", "many"}}).status().message(),
              HasSubstr("HVDRUN_NUM_PROC=many"));
}

TEST(CommandLine, AStrongerSourceOverrulesAnotherSettingOfItsGroup) {
  const StandingSettings hosts = {{{"/etc/c", "launcher: {hosts: 'a:2'}"}}, {}, {}};
  const auto line = ParseStanding({"--hostfile", "h", "true"}, hosts);
  EXPECT_EQ(line->settings.hosts, "");
  EXPECT_EQ(line->settings.hostfile, "h");
  const auto both = ParseStanding({"-H", "b:1", "true"}, hosts, {{"HVDRUN_HOSTFILE", "h"}});
  EXPECT_EQ(both->settings.hosts, "b:1");
  EXPECT_EQ(both->settings.hostfile, "");
}

TEST(CommandLine, UnknownVariablesAreWarningsOrErrorsAsTheUserSays) {
  const StandingSettings misspelt = {{}, {}, {"PATH", "HVDRUN_SHH_PORT"}};
  EXPECT_THAT(ParseStanding({"-np", "1", "true"}, misspelt)->warnings,
              ElementsAre(AllOf(HasSubstr("HVDRUN_SHH_PORT is not a setting"),
                                HasSubstr("did you mean HVDRUN_SSH_PORT?"))));
  const auto strict = ParseStanding({"--strict-config", "-np", "1", "true"}, misspelt);
  EXPECT_THAT(strict.status().message(),
              AllOf(HasSubstr("HVDRUN_SHH_PORT"), HasSubstr("--strict-config")));
}

TEST(CommandLine, StandingSettingsOfElasticJobsSayNothingInOthers) {
  const StandingSettings grace = {{{"/etc/c", "launcher: {reset_limit: 3}"}}, {}, {}};
  EXPECT_THAT(ParseStanding({"-np", "1", "true"}, grace)->warnings, IsEmpty());
  EXPECT_THAT(ParseStanding({"-np", "1", "--reset-limit", "3", "true"}, {})->warnings,
              ElementsAre(HasSubstr("--reset-limit")));
}

TEST(CommandLine, WorkersGetWhatSomeoneSet) {
  Result<ParsedCommandLine> line =
      Parse({"-np", "1", "--log-level=info", "a"}, {{"HVD_TERMINATE_GRACE_SECONDS", "3"}});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->settings.worker_environment,
              ElementsAre("HVD_TERMINATE_GRACE_SECONDS=3", "HOROVOD_LOG_LEVEL=INFO"));
}

TEST(CommandLine, EmptyVariablesAreUnset) {
  Result<ParsedCommandLine> line = Parse({"-np", "1", "a"}, {{"HOROVOD_LOG_LEVEL", ""}});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->settings.log_level, LogLevel::kWarning);
}

TEST(CommandLine, ZeroStartTimeoutFallsThrough) {
  const Env env{{"HOROVOD_START_TIMEOUT", "70"}};
  Result<ParsedCommandLine> line = Parse({"-np", "1", "--start-timeout", "0", "a"}, env);
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->settings.start_timeout_seconds, 70);
}

TEST(CommandLine, WrongVariablesAndKeysAreNamed) {
  EXPECT_EQ(ErrorOf({"-np", "1", "a"}, {{"HVD_TERMINATE_GRACE_SECONDS", "soon"}}),
            "HVD_TERMINATE_GRACE_SECONDS=soon is not a number of seconds: the time from SIGTERM to "
            "SIGKILL is 0 to 3600 seconds, try HVD_TERMINATE_GRACE_SECONDS=10");
  EXPECT_EQ(ErrorOf({"--config-file", "job.yaml", "a"}, {}, "launcher:\n  num_proc: 0\n"),
            "job.yaml:2: launcher.num_proc: 0 is out of range: the number of processes is 1 to "
            "1000000, try launcher.num_proc: 2");
}

TEST(CommandLine, TheFusionThresholdIsInMegabytesButInItsVariable) {
  const auto bytes = [](const Args& args, const Env& env, const std::string& file) {
    Result<ParsedCommandLine> line = Parse(args, env, file);
    EXPECT_TRUE(line.ok()) << line.status().message();
    return line.ok() ? line->settings.fusion_threshold_bytes : -1;
  };
  EXPECT_EQ(bytes({"-np", "1", "a"}, {}, ""), 128 << 20);
  EXPECT_EQ(bytes({"-np", "1", "--fusion-threshold-mb", "32", "a"}, {}, ""), 32 << 20);
  EXPECT_EQ(bytes({"-np", "1", "--fusion-threshold-mb", "512KB", "a"}, {}, ""), 512 << 10);
  EXPECT_EQ(bytes({"-np", "1", "a"}, {{"HOROVOD_FUSION_THRESHOLD", "1000"}}, ""), 1000);
  EXPECT_EQ(bytes({"-np", "1", "--config-file", "job.yaml", "a"}, {},
                  "params:\n  fusion_threshold_mb: 0\n"),
            0);
  Result<ParsedCommandLine> line = Parse({"-np", "1", "--fusion-threshold-mb", "2", "a"});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->settings.worker_environment, Contains("HOROVOD_FUSION_THRESHOLD=2097152"));
}

TEST(CommandLine, KeysOfAFileThatDoNothingAreWarnings) {
  Result<ParsedCommandLine> line =
      Parse({"-np", "1", "--config-file", "job.yaml", "a"}, {{"HOROVOD_CACHE_CAPACITY", "1"}},
            "params:\n  cache_capacity: 32\nautotune:\n  gaussian_process_noise: 1\nlogging:\n  "
            "levl: INFO\n");
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(
      line->warnings,
      ElementsAre("job.yaml:6: logging.levl is not a setting and has no effect; did you mean "
                  "logging.level?",
                  StartsWith("HOROVOD_CACHE_CAPACITY has no effect: "),
                  "job.yaml:4: autotune.gaussian_process_noise has no effect: --autotune learns "
                  "the noise from what it measures"));
}

TEST(CommandLine, AsksForTexts) {
  EXPECT_THAT(Parse({"--help"})->text, HasSubstr("usage: hvdrun -np N"));
  EXPECT_EQ(Parse({"-h"})->action, Action::kBriefHelp);
  EXPECT_EQ(Parse({"--help"})->action, Action::kHelp);
  EXPECT_EQ(Parse({"--version"})->text, "hvdrun " HVD_VERSION "\n");
  Result<ParsedCommandLine> config = Parse({"--print-config", "--log-level", "INFO"});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->action, Action::kPrintConfig);
  EXPECT_THAT(config->text, ContainsRegex("num-proc +-  +default\n"));
  EXPECT_THAT(config->text, ContainsRegex("log-level +INFO +--log-level\n"));
  EXPECT_THAT(config->text, ContainsRegex("verbose +off +default\n"));
  EXPECT_EQ(Parse({"-cb"})->action, Action::kCheckBuild);
}

TEST(CommandLine, ListsKeepEveryValueInOrder) {
  Result<ParsedCommandLine> line =
      Parse({"-np", "1", "-x", "A", "-x", "B=1 2", "--pass-env=C=x=y", "a"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->settings.pass_env, ElementsAre("A", "B=1 2", "C=x=y"));
}

TEST(CommandLine, SettingsOfTheRuntimeTravelInItsVariables) {
  auto environment = [](const Args& args, const Env& env, const std::string& yaml) {
    Args all{"-np", "1", "--config-file", "job.yaml"};
    all.insert(all.end(), args.begin(), args.end());
    all.push_back("a");
    Result<ParsedCommandLine> line = Parse(all, env, yaml);
    return line.ok() ? line->settings.worker_environment : Args{line.status().message()};
  };
  EXPECT_THAT(environment({"--no-stall-check"}, {}, ""),
              ElementsAre("HOROVOD_STALL_CHECK_DISABLE=1"));
  EXPECT_THAT(environment({"--stall-check"}, {{"HOROVOD_STALL_CHECK_DISABLE", "1"}}, ""),
              ElementsAre("HOROVOD_STALL_CHECK_DISABLE=0"));
  EXPECT_THAT(environment({}, {{"HOROVOD_STALL_CHECK_DISABLE", "true"}}, ""),
              ElementsAre("HOROVOD_STALL_CHECK_DISABLE=1"));
  EXPECT_THAT(environment({}, {}, "stall_check: {enabled: false, warning_time_seconds: 5}"),
              ElementsAre("HOROVOD_STALL_CHECK_DISABLE=1", "HOROVOD_STALL_CHECK_TIME_SECONDS=5"));
  EXPECT_THAT(environment({}, {{"HOROVOD_STALL_CHECK_DISABLE", "perhaps"}}, ""),
              ElementsAre(HasSubstr("HOROVOD_STALL_CHECK_DISABLE=perhaps is not on or off")));
}

TEST(CommandLine, FilesThatWorkTodayKeepWorking) {
  Result<ParsedCommandLine> line = Parse({"-np", "1", "--config-file", "job.yaml", "a"}, {},
                                         "controller: gloo\nparams: {cycle_time_ms: 5}\nlogging: "
                                         "{hide_timestamp: true, level: INFO}\n");
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->warnings,
              ElementsAre(StartsWith("job.yaml:2: params.cycle_time_ms has no effect: ")));
  EXPECT_THAT(Parse({"-np", "1", "--config-file", "job.yaml", "a"})->warnings, IsEmpty());
}

// One row, one answer: as a flag, a variable and a key of a file.
TEST(CommandLine, SettingsOfHorovodrunHaveOneAnswerWhereverTheyAreSaid) {
  auto warnings = [](Args args, const Env& env, const std::string& yaml = "") {
    Args all{"-np", "1", "--config-file", "job.yaml"};
    all.insert(all.end(), args.begin(), args.end());
    all.push_back("a");
    Result<ParsedCommandLine> line = Parse(all, env, yaml);
    return line.ok() ? line->warnings : Args{"error: " + line.status().message()};
  };
  constexpr const char* kWhy =
      " has no effect: a tensor is reduced as soon as every rank has announced it, between hosts "
      "with those that became ready while earlier ones were on their way, so there is no cycle";
  EXPECT_THAT(warnings({"--cycle-time-ms", "5"}, {}),
              ElementsAre(std::string("--cycle-time-ms") + kWhy));
  EXPECT_THAT(warnings({}, {{"HOROVOD_CYCLE_TIME", "5"}}),
              ElementsAre(std::string("HOROVOD_CYCLE_TIME") + kWhy));
  EXPECT_THAT(warnings({}, {}, "params: {cycle_time_ms: 5}"),
              ElementsAre(std::string("job.yaml:1: params.cycle_time_ms") + kWhy));
  // A request for the present behaviour needs no warning.
  EXPECT_THAT(warnings({"--gloo", "--no-autotune", "--no-hierarchical-allreduce", "--disable-cache",
                        "--no-timeline-mark-cycles", "--log-without-timestamp"},
                       {{"HOROVOD_AUTOTUNE", "0"}, {"HOROVOD_CPU_OPERATIONS", "gloo"}}),
              IsEmpty());
  EXPECT_THAT(warnings({}, {{"HOROVOD_CPU_OPERATIONS", "ccl"}}),
              ElementsAre(StartsWith("HOROVOD_CPU_OPERATIONS has no effect: ")));
  EXPECT_THAT(warnings({"--autotune", "--autotune-gaussian-process-noise", "0.5"}, {}),
              ElementsAre("--autotune-gaussian-process-noise has no effect: --autotune learns the "
                          "noise from what it measures"));
}

TEST(CommandLine, WhatStartsTheRanks) {
  auto launcher = [](Args args, const std::string& file) {
    args.insert(args.begin(), {"-np", "2"});
    if (!file.empty()) args.insert(args.end(), {"--config-file", "job.yaml"});
    args.push_back("a");
    Result<ParsedCommandLine> line = Parse(args, {}, file);
    return line.ok() ? RankLauncherOf(line->settings) : "error: " + line.status().message();
  };
  EXPECT_EQ(launcher({}, ""), "");
  EXPECT_EQ(launcher({"--gloo"}, ""), "");
  EXPECT_EQ(launcher({"--mpi"}, ""), "mpirun");
  EXPECT_EQ(launcher({"--jsrun"}, ""), "jsrun");
  EXPECT_EQ(launcher({"--controller", "MPI"}, ""), "mpirun");
  EXPECT_EQ(launcher({}, "controller: mpi"), "mpirun");
  EXPECT_EQ(launcher({}, "controller: gloo"), "");
  EXPECT_EQ(launcher({"--gloo"}, "controller: mpi"), "");
  EXPECT_EQ(launcher({"--mpi"}, "controller: gloo"), "mpirun");
  EXPECT_THAT(launcher({"--mpi", "--gloo"}, ""), StartsWith("error: "));
  EXPECT_THAT(launcher({"--mpi", "--jsrun"}, ""), StartsWith("error: "));
  EXPECT_THAT(launcher({"--mpi", "--min-np", "1"}, ""),
              StartsWith("error: --mpi and --min-np exclude each other: "));
  EXPECT_THAT(launcher({"--elastic"}, "controller: mpi"),
              StartsWith("error: job.yaml:1: controller and --elastic exclude each other: "));
}

TEST(CommandLine, OptionsOfMpirunAreForMpirun) {
  Result<ParsedCommandLine> line = Parse({"-np", "2", "--mpi-args=-v", "a"}, {}, "");
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->warnings, ElementsAre("--mpi-args has no effect without --mpi or --jsrun"));
  line = Parse({"-np", "2", "--mpi", "--mpi-args=-v", "--tcp", "a"}, {}, "");
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->warnings, IsEmpty());
  EXPECT_EQ(line->settings.mpi_args, "-v");
  EXPECT_THAT(line->settings.worker_environment, ElementsAre("NCCL_IB_DISABLE=1"));
}

TEST(CommandLine, SettingsOfHorovodReachWorkersOfStockHorovod) {
  const auto parsed = ParseCommandLine({"-np", "2", "--stock-horovod", "--cycle-time-ms", "5",
                                        "--no-hierarchical-allreduce", "--torus-allreduce", "true"},
                                       [](const char* name) {
                                         return std::string_view(name) == "HOROVOD_CACHE_CAPACITY"
                                                    ? std::optional<std::string>("0")
                                                    : std::nullopt;
                                       });
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_THAT(parsed->warnings, IsEmpty());
  EXPECT_THAT(parsed->settings.worker_environment,
              ElementsAre("HOROVOD_CYCLE_TIME=5", "HOROVOD_CACHE_CAPACITY=0",
                          "HOROVOD_HIERARCHICAL_ALLREDUCE=0", "HOROVOD_TORUS_ALLREDUCE=1"));
}

TEST(CommandLine, SettingsOfElasticJobsHaveNoEffectOnOthers) {
  auto warnings = [](Args args, std::map<std::string, std::string> env, const std::string& file) {
    args.insert(args.begin(), {"-np", "2"});
    if (!file.empty()) args.insert(args.end(), {"--config-file", "job.yaml"});
    args.push_back("a");
    Result<ParsedCommandLine> line = Parse(args, env, file);
    EXPECT_TRUE(line.ok()) << line.status().message();
    return line.ok() ? line->warnings : std::vector<std::string>{};
  };
  const char* kWhy =
      " has no effect: the job has a fixed size; --elastic, --min-np or --host-discovery-script "
      "makes it elastic";
  EXPECT_THAT(warnings({"--max-np", "4"}, {}, ""), ElementsAre(std::string("--max-np") + kWhy));
  EXPECT_THAT(warnings({"--reset-limit", "0", "--spares", "0"}, {}, ""),
              ElementsAre(std::string("--reset-limit") + kWhy, std::string("--spares") + kWhy));
  EXPECT_THAT(warnings({}, {}, "launcher: {max_failures: 3}"),
              ElementsAre(std::string("job.yaml:1") + kWhy));
  // A variable may be meant for other jobs.
  EXPECT_THAT(warnings({}, {{"HOROVOD_ELASTIC_TIMEOUT", "5"}}, ""), IsEmpty());
  for (const Args& on :
       {Args{"--elastic"}, Args{"--min-np", "1"}, Args{"--host-discovery-script", "./hosts.sh"}}) {
    Args args = on;
    args.insert(args.end(), {"--max-np", "4"});
    EXPECT_THAT(warnings(args, {}, ""), IsEmpty());
  }
}

TEST(CommandLine, UnknownKeysAreNamedBesideWhatIsMissing) {
  EXPECT_THAT(ErrorOf({"--config-file", "job.yaml", "a"}, {}, "launcher: {num_prc: 2}\n"),
              AllOf(HasSubstr("-np is missing"),
                    HasSubstr("launcher.num_prc is not a setting and has no effect; did you mean "
                              "launcher.num_proc?")));
}

TEST(CommandLine, AnUnknownKeyProposesWhatTheUserMeant) {
  const auto warning = [](const std::string& yaml) {
    Result<ParsedCommandLine> line =
        Parse({"-np", "1", "--config-file", "job.yaml", "a"}, {}, yaml);
    EXPECT_TRUE(line.ok()) << line.status().message();
    return line.ok() && line->warnings.size() == 1 ? line->warnings[0] : std::string();
  };
  EXPECT_THAT(warning("launcher: {timeout: 5}\n"), HasSubstr("mean launcher.timeout_seconds?"));
  EXPECT_THAT(warning("launcher: {nnodes: 2}\n"), HasSubstr("no effect; set it by --nnodes"));
  EXPECT_THAT(warning("launcher: {np: 2}\n"), HasSubstr("did you mean launcher.num_proc?"));
  EXPECT_THAT(warning("elastic: {min_workers: 2}\n"), EndsWith("has no effect"));
}

TEST(CommandLine, WordsOfTorchrunMeanTheSameOrAreRefused) {
  for (const char* flag : {"--nproc-per-node", "--nproc_per_node"}) {
    Result<ParsedCommandLine> line =
        Parse({flag, "3", "--nnodes=1", "--standalone", "--tee", "3", "--log-dir", "logs", "a"});
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_EQ(line->settings.num_proc, 3);
    EXPECT_EQ(line->settings.output_filename, "logs");
    EXPECT_TRUE(line->warnings.empty());
    for (const char* hosts : {"-H", "--hostfile"}) {
      EXPECT_THAT(Parse({flag, "3", hosts, "a", "x"}).status().message(),
                  ::testing::AllOf(HasSubstr("one host"), HasSubstr("say -np")));
    }
  }
  EXPECT_TRUE(Parse({"-np", "3", "-H", "a", "x"}).ok());
  EXPECT_THAT(Parse({"-H", "a,b", "--nnodes", "2", "a"}).status().message(),
              HasSubstr("--nnodes 2 says that this command starts on each node"));
  EXPECT_THAT(Parse({"-np", "2", "--node-rank", "1", "a"}).status().message(),
              HasSubstr("--node-rank 1 is not the rank of one node: say --nnodes"));
  Result<ParsedCommandLine> meeting = Parse({"-np", "1", "--rdzv-backend", "c10d", "a"});
  ASSERT_TRUE(meeting.ok());
  EXPECT_EQ(meeting->warnings.size(), 1U);
}

// As torchrun is started, with its options, which are those of deepspeed and accelerate, too.
TEST(CommandLine, TheSameCommandOnEveryNode) {
  Settings asked;
  const auto parse = [&](Args args) {
    args.emplace_back("train");
    return ParseCommandLine(
        args, [](const char*) { return std::optional<std::string>(); },
        [](const std::string&) -> Result<std::string> { return InvalidArgument("no file"); },
        Verb::kRun,
        [&](const Settings& settings) -> Result<std::optional<AllocatedHosts>> {
          asked = settings;
          AllocatedHosts hosts{"--nnodes=2",           "", "localhost:4,node-1:4", 8,
                               RemoteLauncher::kNodes, ""};
          if (settings.nnodes == "1:2") hosts.least_slots = 4;
          return std::optional(hosts);
        });
  };
  for (const Args& args : {Args{"--nnodes", "2", "--node-rank", "1", "--master-addr", "a",
                                "--master-port", "29500", "--nproc-per-node", "4"},
                           Args{"--nnodes=2", "--node_rank=1", "--master_addr=a",
                                "--master_port=29500", "--nproc_per_node=4"},
                           Args{"--num_machines", "2", "--machine_rank", "1", "--main_process_ip",
                                "a", "--main_process_port", "29500", "--nproc-per-node", "4"}}) {
    const Result<ParsedCommandLine> line = parse(args);
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_THAT(line->warnings, IsEmpty());
    EXPECT_EQ(asked.nnodes, "2");
    EXPECT_EQ(asked.node_rank, 1);
    EXPECT_EQ(asked.master_addr, "a");
    EXPECT_EQ(asked.master_port, 29500);
    EXPECT_EQ(asked.slots_per_host, 4);
    EXPECT_EQ(line->settings.num_proc, 8);
    EXPECT_EQ(line->settings.launcher, RemoteLauncher::kNodes);
    EXPECT_FALSE(IsElastic(line->settings));
  }
  const Result<ParsedCommandLine> elastic =
      parse({"--nnodes", "1:2", "--rdzv-endpoint", "a:29400", "--reset-limit", "3"});
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  EXPECT_EQ(asked.master_addr, "a:29400");
  EXPECT_TRUE(IsElastic(elastic->settings));
  EXPECT_THAT(elastic->warnings, IsEmpty());
  struct Row {
    Args args;
    int min, np, max;  // 0: not said
  };
  // Without -np such a job begins with the fewest ranks that are enough, and may have all.
  for (const Row& row : {Row{{"--nnodes", "1:2"}, 4, 4, 8},
                         {{"--nnodes", "1:2", "--min-np", "6"}, 6, 6, 8},
                         {{"--nnodes", "1:2", "--max-np", "6"}, 4, 4, 6},
                         {{"--nnodes", "1:2", "-np", "8"}, 4, 8, 0},
                         {{"--nnodes", "2", "--min-np", "3"}, 3, 3, 8},
                         {{"--nnodes", "2", "--elastic"}, 0, 8, 0}}) {
    const Settings settings = parse(row.args)->settings;
    EXPECT_EQ(settings.min_num_proc, row.min);
    EXPECT_EQ(settings.num_proc, row.np);
    EXPECT_EQ(settings.max_num_proc, row.max);
  }
}

TEST(CommandLine, BracketsInValuesAreOrdinaryCharacters) {
  Result<ParsedCommandLine> line = Parse({"-np", "1", "--config-file", "[a,b]", "x"});
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.status().message(), "no file [a,b]");
}

TEST(CommandLine, RefusesFilesThatAreNone) {
  EXPECT_THAT(ReadConfigFile(".").status().message(), HasSubstr("is a directory"));
  EXPECT_THAT(ReadConfigFile("does/not/exist").status().message(), HasSubstr("No such file"));
  EXPECT_THAT(ReadConfigFile("/dev/zero").status().message(), HasSubstr("longer than 1 MiB"));
}

}  // namespace
}  // namespace hvd
