// The promises of every HostWatch, checked with real scripts and files.
#include "launcher/elastic_hosts/host_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>

#include "launcher/elastic_hosts/hostfile_watch.h"
#include "launcher/elastic_hosts/make_host_watch.h"
#include "launcher/elastic_hosts/script_watch.h"
#include "launcher/process/process_tree.h"
#include "runtime/base/env.h"
#include "runtime/base/unique_fd.h"
#include "test/support/deadline.h"

namespace hvd {

// For the messages of tests that fail.
void PrintTo(const HostAnswer& answer, std::ostream* out) {
  for (const HostSlots& host : answer.hosts) *out << host.host << ":" << host.slots << " ";
  *out << answer.trouble;
}

namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr auto kNever = 1h;
// A script that should have been ended would print after this.
constexpr const char* kForever = "600";

std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (const auto& [name, value] : AllEnv()) environment.push_back(name + "=" + value);
  return environment;
}

class HostWatchTest : public testing::Test {
 protected:
  HostWatchTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "hvd-hosts-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    BecomeSubreaper();
  }
  ~HostWatchTest() override {
    if (watch_) watch_->Stop();
    watch_.reset();
    std::filesystem::remove_all(folder_);
  }

  WatchParts Parts() {
    return {[](const std::vector<std::string>& names) {
              std::set<std::string> own;
              for (const std::string& name : names) {
                if (name == "localhost") own.insert(name);
              }
              return own;
            },
            [](bool remote) { return remote ? 0U : 8U; },
            [this](const std::string& note) { notes_.push_back(note); }};
  }

  // Runs `script`, by default again and again without a pause.
  void WatchScript(const std::string& script, ScriptWatchTimes times = {.pause = 1ms}) {
    watch_ = std::make_unique<ScriptWatch>(io_, Script{script, Environment(), folder_}, Parts(),
                                           family_, times);
    Start();
  }

  void Start() {
    watch_->Start([this](const HostAnswer& answer) { answers_.push_back(answer); });
    EXPECT_THAT(answers_, IsEmpty()) << "answered from within Start()";
  }

  void RunUntil(const std::function<bool()>& done) {
    const TimePoint end = SteadyNow() + kDeadline;
    while (!done()) {
      ASSERT_LT(SteadyNow(), end) << "nothing happened within the deadline";
      io_.run_one_for(2ms);
    }
  }
  void RunUntilAnswers(size_t count) {
    RunUntil([&] { return answers_.size() >= count; });
  }
  // The script has been run this often; scripts append a line to "runs".
  void RunUntilRuns(size_t count) {
    RunUntil([&] {
      std::ifstream runs(folder_ + "/runs");
      return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(runs), {}, '\n')) >=
             count;
    });
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_ + "/" + name); }
  void Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  pid_t PidIn(const std::string& name) {
    pid_t pid = 0;
    std::ifstream(folder_ + "/" + name) >> pid;
    return pid;
  }
  bool IsGone(pid_t pid) {
    family_->Reap();
    const auto process = LookAtProcess(pid);
    return !process || process->state == 'Z';
  }
  void RunUntilGone(pid_t pid) {
    ASSERT_GT(pid, 0);
    RunUntil([&] { return IsGone(pid); });
  }

  std::string folder_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::shared_ptr<LocalFamily> family_ = std::make_shared<LocalFamily>();
  std::vector<HostAnswer> answers_;
  std::vector<std::string> notes_;
  std::unique_ptr<HostWatch> watch_;
};

HostSlots Local(uint32_t slots) { return {.host = "localhost", .slots = slots}; }
HostSlots Remote(const std::string& name, uint32_t slots) {
  return {.host = name, .slots = slots, .remote = true};
}

// ---- scripts

TEST_F(HostWatchTest, AScriptIsAskedAgainAndOnlyChangesAreTold) {
  Write("hosts", "localhost:2\na:1\n");
  WatchScript("echo >> runs; cat hosts");
  RunUntilAnswers(1);
  EXPECT_THAT(answers_, ElementsAre(HostAnswer{{Local(2), Remote("a", 1)}, ""}));
  RunUntilRuns(4);
  EXPECT_EQ(answers_.size(), 1u);
  Write("hosts", "localhost:2\na:3\nb\n");
  RunUntilAnswers(2);
  HostSlots b = Remote("b", 1);
  b.slots_known = false;
  EXPECT_EQ(answers_[1], (HostAnswer{{Local(2), Remote("a", 3), b}, ""}));
  Write("hosts", "");
  RunUntilAnswers(3);
  EXPECT_EQ(answers_[2], (HostAnswer{{}, ""}));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(HostWatchTest, AScriptHasASessionOfItsOwnAndNoDescriptorsOfOurs) {
  Write("ours", "");
  UniqueFd ours(::open((folder_ + "/ours").c_str(), O_RDONLY));  // without close-on-exec
  WatchScript(
      "ls -l /proc/$$/fd > descriptors; cut -d' ' -f6 /proc/$$/stat > session; "
      "echo $$ $(cat session) $(cat descriptors) >&2; "
      "test \"$(cat session)\" = $$ && ! grep -E 'ours' descriptors && "
      "test \"$(readlink /proc/$$/fd/0)\" = /dev/null && echo a:1 || exit 1");
  RunUntilAnswers(1);
  EXPECT_THAT(answers_, ElementsAre(HostAnswer{{Remote("a", 1)}, ""}));
}

TEST_F(HostWatchTest, EachKindOfTroubleIsSaidOnceAndTheLastGoodListCounts) {
  Write("mode", "echo a:1");
  WatchScript("echo >> runs; . ./mode");
  RunUntilAnswers(1);
  const std::vector<HostSlots> a = {Remote("a", 1)};
  const std::pair<const char*, const char*> troubles[] = {
      {"echo x; echo no cluster >&2; exit 3", "ended with exit code 3, and said 'no cluster'"},
      {"echo a:1; echo 'what is this?'", "line 2 ('what is this?')"},
      {"kill -9 $$", "ended with signal 9"},
      {"exit 4", "ended with exit code 4"},
  };
  size_t runs = 1;
  for (const auto& [mode, words] : troubles) {
    const size_t before = answers_.size();
    Write("mode", mode);
    RunUntilAnswers(before + 1);
    EXPECT_EQ(answers_.back().hosts, a);
    EXPECT_THAT(answers_.back().trouble,
                AllOf(StartsWith("the discovery script '"), HasSubstr(words)));
    std::ifstream file(folder_ + "/runs");
    runs = static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
    RunUntilRuns(runs + 3);
    EXPECT_EQ(answers_.size(), before + 1) << mode << " is said again";
  }
  const size_t before = answers_.size();
  Write("mode", "echo a:1");
  RunUntilAnswers(before + 1);
  EXPECT_EQ(answers_.back(), (HostAnswer{a, ""}));
}

TEST_F(HostWatchTest, TroubleWithTheFirstAnswerIsSaidWithoutHosts) {
  WatchScript("./no-such-script");
  RunUntilAnswers(1);
  EXPECT_THAT(answers_[0].hosts, IsEmpty());
  EXPECT_THAT(answers_[0].trouble,
              AllOf(HasSubstr("ended with exit code 127"), HasSubstr("./no-such-script")));
}

// P54, E2: a script that hangs is ended with all that it started, and meanwhile nothing waits.
TEST_F(HostWatchTest, AScriptThatHangsIsEndedWithItsChildren) {
  Write("mode", "echo a:1");
  WatchScript(std::string("echo >> runs; . ./mode"), {.pause = 1ms, .limits = {.time = 2s}});
  RunUntilAnswers(1);
  Write("mode", std::string("trap '' TERM; setsid sleep ") + kForever +
                    " & echo $! > escaped; (trap '' TERM; sleep " + kForever +
                    ") & echo $! > child; echo $$ > self; sleep " + kForever);
  RunUntilAnswers(2);
  EXPECT_EQ(answers_[1].hosts, answers_[0].hosts);
  EXPECT_THAT(answers_[1].trouble, HasSubstr("took longer than 2 s and was ended"));
  watch_->Stop();  // the next run would write other numbers
  for (const char* name : {"self", "child", "escaped"}) RunUntilGone(PidIn(name));
}

TEST_F(HostWatchTest, TheLoopGoesOnWhileAScriptHangs) {
  WatchScript(std::string("sleep ") + kForever);
  asio::steady_timer timer(io_, 1ms);
  bool ticked = false;
  timer.async_wait([&](const asio::error_code&) { ticked = true; });
  RunUntil([&] { return ticked; });
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(HostWatchTest, WhatAScriptLeavesInTheBackgroundIsEnded) {
  WatchScript(std::string("sleep ") + kForever + " & echo $! > child; echo a:1", {.pause = kNever});
  RunUntilAnswers(1);
  EXPECT_THAT(answers_[0].hosts, ElementsAre(Remote("a", 1)));
  RunUntilGone(PidIn("child"));
}

TEST_F(HostWatchTest, OutputThatNeverEndsIsCutOff) {
  // The child writes its pid before it prints: the script is ended soon after.
  WatchScript("sh -c 'echo $$ > child; exec yes a:1' & wait",
              {.pause = kNever, .limits = {.output = 10'000}});
  RunUntilAnswers(1);
  EXPECT_THAT(answers_[0].trouble, HasSubstr("printed more than 10000 bytes and was ended"));
  RunUntilGone(PidIn("child"));
}

TEST_F(HostWatchTest, TenMegabytesOfOutputAreNotKept) {
  WatchScript("head -c 10485760 /dev/zero", {.pause = kNever});
  RunUntilAnswers(1);
  EXPECT_THAT(answers_[0].trouble, HasSubstr("printed more than 1048576 bytes"));
}

TEST_F(HostWatchTest, MuchOnStderrAloneIsNoTrouble) {
  WatchScript("head -c 1000000 /dev/zero >&2; echo a:1", {.pause = kNever});
  RunUntilAnswers(1);
  EXPECT_THAT(answers_, ElementsAre(HostAnswer{{Remote("a", 1)}, ""}));
}

TEST_F(HostWatchTest, GarbageIsNamedWithItsLineAndCannotHarmATerminal) {
  WatchScript("printf 'a:1\\n\\033[31mb\\n'", {.pause = kNever});
  RunUntilAnswers(1);
  EXPECT_THAT(answers_[0].trouble, HasSubstr("line 2 ('\\x1b[31mb')"));
}

TEST_F(HostWatchTest, AHostThatIsPrintedTwiceWithDifferentSlotsIsNotedOnce) {
  WatchScript("echo >> runs; echo a:1; echo a:2");
  RunUntilRuns(4);
  EXPECT_THAT(answers_, ElementsAre(HostAnswer{{Remote("a", 2)}, ""}));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("host a is on line 1 with 1 slots and on line 2")));
}

TEST_F(HostWatchTest, StopEndsARunningScriptAndNoAnswerComesAfterIt) {
  WatchScript(std::string("echo $$ > self; sleep ") + kForever + " & echo $! > child; wait");
  RunUntil([&] { return PidIn("child") > 0; });
  watch_->Stop();
  RunUntilGone(PidIn("self"));
  RunUntilGone(PidIn("child"));
  io_.poll();
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(HostWatchTest, AnAnswerMayStopTheWatch) {
  watch_ =
      std::make_unique<ScriptWatch>(io_, Script{"echo >> runs; echo a:1", Environment(), folder_},
                                    Parts(), family_, ScriptWatchTimes{.pause = 1ms});
  watch_->Start([this](const HostAnswer& answer) {
    answers_.push_back(answer);
    watch_.reset();
  });
  RunUntilAnswers(1);
  io_.poll();
  EXPECT_EQ(answers_.size(), 1u);
}

// As kill -9 of hvdrun: the process that watches is gone at once.
TEST_F(HostWatchTest, NothingIsLeftWhenTheProcessThatWatchesIsKilled) {
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    asio::io_context io;
    ScriptWatch watch(io,
                      {std::string("trap '' TERM HUP; sleep ") + kForever +
                           " & echo $! > child; echo $$ > self; wait",
                       Environment(), folder_},
                      Parts(), std::make_shared<LocalFamily>(), {});
    watch.Start([](const HostAnswer&) {});
    io.run();
    ::_exit(0);
  }
  RunUntil([&] { return PidIn("self") > 0; });
  const pid_t child = PidIn("child"), self = PidIn("self");
  ::kill(watcher, SIGKILL);
  ::waitpid(watcher, nullptr, 0);
  RunUntilGone(self);
  RunUntilGone(child);
}

TEST_F(HostWatchTest, DescriptorsAndChildrenStayAsFewAsTheyWere) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  WatchScript("echo >> runs; sleep 600 & echo a:1");
  RunUntilRuns(3);
  const auto before = descriptors();
  RunUntilRuns(40);
  EXPECT_LE(descriptors(), before + 8);  // a run has some
  watch_->Stop();
  RunUntil([&] { return family_->Reap(); });  // no child of any kind
}

TEST_F(HostWatchTest, TheFirstAnswerCanBeWaitedFor) {
  work_.reset();
  ScriptWatch good(io_, {"echo a:1", Environment(), folder_}, Parts(), family_);
  EXPECT_EQ(FirstAnswer(io_, good), (HostAnswer{{Remote("a", 1)}, ""}));
  ScriptWatch bad(io_, {"exit 3", Environment(), folder_}, Parts(), family_);
  EXPECT_THAT(FirstAnswer(io_, bad).trouble, HasSubstr("exit code 3"));
}

// ---- files

class HostfileWatchTest : public HostWatchTest {
 protected:
  void WatchFile(const std::string& name) {
    const auto read = [](const std::string& path) -> Result<std::vector<HostSpec>> {
      std::ifstream file(path);
      if (!file) return InvalidArgument("the host file cannot be opened");
      return ParseHostFile(std::string(std::istreambuf_iterator<char>(file), {}), "hosts");
    };
    watch_ = std::make_unique<HostfileWatch>(io_, folder_ + "/" + name, read, Parts(),
                                             HostfileWatchTimes{.pause = 5ms, .settled = 5ms});
    Start();
  }
  void RunFor(Duration time) {
    asio::steady_timer timer(io_, time);
    bool over = false;
    timer.async_wait([&](const asio::error_code&) { over = true; });
    RunUntil([&] { return over; });
  }
};

TEST_F(HostfileWatchTest, AFileIsReadAgainWhenItChanges) {
  Write("hosts", "localhost slots=2\na:1\n");
  WatchFile("hosts");
  RunUntilAnswers(1);
  EXPECT_EQ(answers_[0], (HostAnswer{{Local(2), Remote("a", 1)}, ""}));
  Write("hosts", "localhost slots=2\n# a has left\n");
  RunUntilAnswers(2);
  EXPECT_EQ(answers_[1], (HostAnswer{{Local(2)}, ""}));
  // Another text, the same hosts; then what comes after it.
  Write("hosts", "localhost slots=2\n");
  RunFor(50ms);
  Write("hosts", "a:1\n");
  RunUntilAnswers(3);
  EXPECT_EQ(answers_[2], (HostAnswer{{Remote("a", 1)}, ""}));
}

// Kubernetes mounts a ConfigMap as links to ..data/hosts, and swaps the link ..data.
TEST_F(HostfileWatchTest, TheSwapOfAConfigMapIsSeen) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ + "/..1");
  fs::create_directory(folder_ + "/..2");
  Write("..1/hosts", "a:1\n");
  Write("..2/hosts", "b:1\n");
  fs::create_symlink("..1", folder_ + "/..data");
  fs::create_symlink("..data/hosts", folder_ + "/hosts");
  WatchFile("hosts");
  RunUntilAnswers(1);
  fs::create_symlink("..2", folder_ + "/..data_tmp");
  fs::rename(folder_ + "/..data_tmp", folder_ + "/..data");
  RunUntilAnswers(2);
  EXPECT_EQ(answers_[1], (HostAnswer{{Remote("b", 1)}, ""}));
}

TEST_F(HostfileWatchTest, AFileThatIsGoneBadOrEmptyIsTroubleAndTheLastGoodListCounts) {
  Write("hosts", "a:1\n");
  WatchFile("hosts");
  RunUntilAnswers(1);
  const std::vector<HostSlots> a = {Remote("a", 1)};
  for (const std::string text : {"a:one\n", "", "remove"}) {
    if (text == "remove") {
      std::filesystem::remove(folder_ + "/hosts");
    } else {
      Write("hosts", text);
    }
    const size_t before = answers_.size();
    RunUntilAnswers(before + 1);
    EXPECT_EQ(answers_.back().hosts, a) << text;
    EXPECT_NE(answers_.back().trouble, "") << text;
    Write("hosts", "a:1\n");
    RunUntilAnswers(before + 2);
    EXPECT_EQ(answers_.back(), (HostAnswer{a, ""}));
  }
}

// ---- one answer, and the choice of the source

TEST_F(HostWatchTest, NamedHostsAreOneAnswer) {
  watch_ = std::make_unique<FixedWatch>(io_, *ParseHostList("localhost:2,a:1,b"), Parts());
  Start();
  RunUntilAnswers(1);
  HostSlots b = Remote("b", 1);
  b.slots_known = false;
  EXPECT_THAT(answers_, ElementsAre(HostAnswer{{Local(2), Remote("a", 1), b}, ""}));
}

TEST_F(HostWatchTest, ANameServerThatIsSlowHoldsUpNobody) {
  WatchParts parts = Parts();
  std::promise<void> answer;
  parts.own_names = [answered = answer.get_future().share()](const std::vector<std::string>&) {
    answered.wait();
    return std::set<std::string>{"a"};
  };
  watch_ = std::make_unique<FixedWatch>(io_, *ParseHostList("a:1"), parts);
  Start();
  asio::steady_timer timer(io_, 20ms);
  bool ticked = false;
  timer.async_wait([&](const asio::error_code&) { ticked = true; });
  RunUntil([&] { return ticked; });
  EXPECT_THAT(answers_, IsEmpty());
  answer.set_value();
  RunUntilAnswers(1);
  EXPECT_FALSE(answers_[0].hosts[0].remote);
}

class MadeHostWatchTest : public HostWatchTest {
 protected:
  SelectionFacts Facts() {
    return {[this](const std::string& path) -> Result<std::string> {
              std::ifstream file(folder_ + "/" + path);
              if (!file) return Internal("cannot be opened");
              return std::string(std::istreambuf_iterator<char>(file), {});
            },
            [this](const std::string& word) {
              return WordFacts{Exists(word), false};
            },
            Parts().own_names, [] { return std::string("me"); }, [] { return 8U; }};
  }
  std::string Made() {
    answers_.clear();
    std::vector<std::string> notes;
    const Result<HostWatchPlan> plan = PlanHostWatch(settings_, Facts(), notes);
    if (!plan.ok()) return plan.status().message();
    watch_ = MakeHostWatch(io_, settings_, *plan, Facts(), {Environment(), folder_, family_, {}});
    Start();
    RunUntilAnswers(1);
    watch_->Stop();
    std::string text = answers_[0].trouble;
    for (const HostSlots& host : answers_[0].hosts) {
      text += (text.empty() ? "" : " ") + host.host + ":" + std::to_string(host.slots) +
              (host.remote ? "r" : "");
    }
    return text;
  }
  Settings settings_;
};

TEST_F(MadeHostWatchTest, TheSettingsChooseTheSource) {
  settings_.num_proc = 4;
  settings_.hosts = "localhost,a:2";
  EXPECT_EQ(Made(), "localhost:8 a:2r");
  settings_.slots_per_host = 3;
  settings_.hosts = "localhost,a";
  EXPECT_EQ(Made(), "localhost:3 a:3r");
  Write("hosts.txt", "b:1\n");
  settings_.hosts = "hosts.txt";
  EXPECT_EQ(Made(), "b:1r");
  settings_.hosts = "";
  settings_.hostfile = "hosts.txt";
  EXPECT_EQ(Made(), "b:1r");
  settings_.hostfile = "gone";
  EXPECT_THAT(Made(), HasSubstr("the host file gone cannot be opened"));
  settings_.hostfile = "";
  settings_.hosts = "a:x";
  EXPECT_THAT(Made(), HasSubstr("'a:x'"));
  settings_.hosts = "";
  settings_.host_discovery_script = "echo c; echo localhost:1";
  EXPECT_EQ(Made(), "c:3r localhost:1");
  settings_.hosts = "a";
  EXPECT_THAT(Made(), HasSubstr("both name the hosts"));
}

TEST_F(MadeHostWatchTest, ThisMachineHasASlotForEachRankAndSpare) {
  settings_.num_proc = 2;
  settings_.max_num_proc = 5;
  settings_.spares = 2;
  settings_.hosts_per_machine = 2;
  EXPECT_EQ(Made(), "host-0:4 host-1:4");
  settings_.host_discovery_script = "echo host-1:3; echo host-2:1";
  EXPECT_EQ(Made(), "host-1:3 host-2:1r");
}

}  // namespace
}  // namespace hvd
