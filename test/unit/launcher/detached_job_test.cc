#include "launcher/detached/detached_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "launcher/detached/follow.h"
#include "launcher/detached/keeper.h"
#include "runtime/base/output_file.h"
#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

using DetachedJobTest = TemporaryFolderTest;

DetachedJob Example(const std::string& folder) {
  DetachedJob job;
  job.folder = folder;
  job.name = folder.substr(folder.rfind('/') + 1);
  job.id = "0123456789abcdef";
  job.command = "python \"train.py\"";
  job.directory = "/data";
  job.host = "node1";
  job.place = "boot/4026531836/0:1";
  job.driver = 42;
  job.driver_start_ticks = 4711;
  job.pipe = 5;
  job.started_at = 1'700'000'000;
  job.elastic = true;
  job.output_limit_bytes = 1 << 20;
  job.ranks_folder = folder + "/ranks";
  job.error_file = folder + "/error.json";
  return job;
}

TEST(DetachedJobsFolder, IsOfTheUser) {
  using Map = std::map<std::string, std::string>;
  const auto folder = [](const Map& variables) {
    return DetachedJobsFolder([&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  EXPECT_EQ(folder({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}), "/s/hvdrun/jobs");
  EXPECT_EQ(folder({{"XDG_STATE_HOME", "s"}, {"HOME", "/h"}}), "/h/.local/state/hvdrun/jobs");
  EXPECT_EQ(folder({}), "");
}

TEST(NameFor, IsThatOfTheScript) {
  EXPECT_EQ(NameFor({"python", "-u", "/a/b/Train_GPT.v2.py", "--lr", "x.py"}), "train-gpt-v2");
  EXPECT_EQ(NameFor({"./a.out"}), "a-out");
  EXPECT_EQ(NameFor({"sh", "-c", "exit 3"}), "sh");
  EXPECT_EQ(NameFor({}), "job");
  EXPECT_EQ(NameFor({"/x/\xc3\xa4\n"}), "job");
  EXPECT_EQ(NameFor({std::string(100, 'a')}).size(), 24u);
}

TEST_F(DetachedJobTest, NamesAreUnique) {
  const std::string jobs = folder_ + "/new/jobs";
  EXPECT_THAT(*MakeJobFolder(jobs, "train"), EndsWith("/train-1"));
  EXPECT_THAT(*MakeJobFolder(jobs, "train"), EndsWith("/train-2"));
  EXPECT_THAT(*MakeJobFolder(jobs, "eval"), EndsWith("/eval-1"));
  EXPECT_FALSE(MakeJobFolder("", "train").ok());
}

TEST_F(DetachedJobTest, FoldersAreClosedToOthers) {
  const std::string jobs = folder_ + "/jobs";
  ASSERT_EQ(::mkdir(jobs.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(jobs.c_str(), 0777), 0);
  const std::string made = *MakeJobFolder(jobs, "train");
  for (const std::string& path : {jobs, made}) {
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0700U) << path;
  }
}

TEST_F(DetachedJobTest, ALinkIsRefused) {
  std::filesystem::create_directory(folder_ + "/real");
  std::filesystem::create_directory_symlink(folder_ + "/real", folder_ + "/jobs");
  const auto made = MakeJobFolder(folder_ + "/jobs", "train");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr("is a symbolic link"));
}

TEST_F(DetachedJobTest, IsReadAsItWasWritten) {
  const std::string folder = *MakeJobFolder(folder_ + "/jobs", "train");
  const DetachedJob job = Example(folder);
  ASSERT_TRUE(WriteWholeFile(folder + "/job", DetachedJobJson(job)).ok());
  const std::vector<DetachedJob> found = *ReadDetachedJobs(folder_ + "/jobs");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(DetachedJobJson(found[0]), DetachedJobJson(job));
  EXPECT_FALSE(found[0].end);
  ASSERT_TRUE(WriteWholeFile(folder + "/end", DetachedEndJson({3, 1'700'000'009, "why"})).ok());
  const auto again = ReadDetachedJob(folder);
  ASSERT_TRUE(again.ok() && again->end);
  EXPECT_EQ(again->end->exit_code, 3);
  EXPECT_EQ(again->end->reason, "why");
  EXPECT_EQ(DetachedState(*again), "failed");
  EXPECT_THAT(DetachedTable(found, 1'700'003'600), HasSubstr("train-1"));
}

TEST_F(DetachedJobTest, DamagedOnesAreNoJobs) {
  for (const char* text : {"", "{", "[]", "{\"version\":1}", "{\"name\":1}"}) {
    const std::string folder = *MakeJobFolder(folder_ + "/jobs", "train");
    std::ofstream(folder + "/job") << text;
    EXPECT_FALSE(ReadDetachedJob(folder).ok()) << text;
  }
  std::vector<DamagedJob> damaged;
  EXPECT_TRUE(ReadDetachedJobs(folder_ + "/jobs", &damaged)->empty());
  ASSERT_EQ(damaged.size(), 5u) << "and are named";
  for (const DamagedJob& one : damaged) {
    EXPECT_THAT(one.reason, HasSubstr("has a file job that is damaged: "));
    EXPECT_TRUE(RemoveDamagedJob(one).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/jobs"));
}

TEST_F(DetachedJobTest, OneThatIsBeingMadeIsNotDamaged) {
  ASSERT_TRUE(MakeJobFolder(folder_ + "/jobs", "train").ok());
  std::vector<DamagedJob> damaged;
  EXPECT_TRUE(ReadDetachedJobs(folder_ + "/jobs", &damaged)->empty());
  EXPECT_TRUE(damaged.empty());
}

TEST_F(DetachedJobTest, TheExitCodeNeedsNoMoreRoomAtTheEnd) {
  const DetachedJob job = Example(*MakeJobFolder(folder_ + "/jobs", "train"));
  EXPECT_EQ(ReadExitCode(job), std::nullopt);
  ASSERT_TRUE(PrepareExitCode(job).ok());
  EXPECT_EQ(ReadExitCode(job), std::nullopt) << "it has not ended";
  const auto size = std::filesystem::file_size(job.PathOf("exit"));
  for (int code : {0, 3, 143, 255}) {
    WriteExitCode(job, code);
    EXPECT_EQ(ReadExitCode(job), code);
    EXPECT_EQ(std::filesystem::file_size(job.PathOf("exit")), size);
  }
}

TEST_F(DetachedJobTest, AFolderThatIsRefusedIsNotTakenForAnEmptyOne) {
  EXPECT_TRUE(ReadDetachedJobs(folder_ + "/missing")->empty());
  ASSERT_EQ(::symlink("/tmp", (folder_ + "/jobs").c_str()), 0);
  EXPECT_THAT(ReadDetachedJobs(folder_ + "/jobs").status().message(),
              HasSubstr("is a symbolic link"));
}

TEST_F(DetachedJobTest, NoFolderOnTheWayIsOpenToOthers) {
  const mode_t before = ::umask(0);
  const Result<std::string> made = MakeJobFolder(folder_ + "/state/hvdrun/jobs", "train");
  ::umask(before);
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (const char* part : {"/state", "/state/hvdrun", "/state/hvdrun/jobs"}) {
    struct stat facts {};
    ASSERT_EQ(::stat((folder_ + part).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u) << part;
  }
}

TEST(DetachedJobNamed, ByNameOrTheOnlyOneThatRuns) {
  std::vector<DetachedJob> jobs = {Example("/j/a-1"), Example("/j/b-1")};
  jobs[1].id = "fedcba9876543210";
  EXPECT_EQ(DetachedJobNamed(jobs, "b-1")->name, "b-1");
  EXPECT_EQ(DetachedJobNamed(jobs, "fedcba9876543210")->name, "b-1");
  EXPECT_THAT(DetachedJobNamed(jobs, "").status().message(), HasSubstr("a-1, b-1"));
  EXPECT_FALSE(DetachedJobNamed(jobs, "a").ok());
  jobs[0].end = DetachedEnd{};
  EXPECT_EQ(DetachedJobNamed(jobs, "")->name, "b-1");
  jobs[1].end = DetachedEnd{};
  EXPECT_FALSE(DetachedJobNamed(jobs, "").ok());
  EXPECT_EQ(DetachedJobNamed(jobs, "a-1")->name, "a-1");
}

TEST(EndOfKilled, NamesTheSignal) {
  const DetachedEnd killed = EndOfKilled(SIGKILL, 7);
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_THAT(killed.reason, HasSubstr("killed by signal 9"));
  EXPECT_EQ(EndOfKilled(3 << 8, 7).exit_code, 3);
}

TEST_F(DetachedJobTest, OldOnesAreForgotten) {
  for (int64_t at : {100, 900}) {
    const std::string folder = *MakeJobFolder(folder_ + "/jobs", "train");
    ASSERT_TRUE(WriteWholeFile(folder + "/job", DetachedJobJson(Example(folder))).ok());
    ASSERT_TRUE(WriteWholeFile(folder + "/end", DetachedEndJson({0, at, ""})).ok());
  }
  ASSERT_TRUE(WriteWholeFile(*MakeJobFolder(folder_ + "/jobs", "train") + "/job",
                             DetachedJobJson(Example("train-3")))
                  .ok());
  ForgetOldJobs(*ReadDetachedJobs(folder_ + "/jobs"), 1000, 500);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs/train-1"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/jobs/train-2"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/jobs/train-3")) << "it has not ended";
}

TEST(ParseSince, AgesAndTimes) {
  constexpr int64_t kSecond = 1'000'000'000, kNow = 10'000'000 * kSecond;
  EXPECT_EQ(ParseSince("30s", kNow), kNow - 30 * kSecond);
  EXPECT_EQ(ParseSince("10m", kNow), kNow - 600 * kSecond);
  EXPECT_EQ(ParseSince("2h", kNow), kNow - 7200 * kSecond);
  EXPECT_EQ(ParseSince("1d", kNow), kNow - 86'400 * kSecond);
  std::tm parts{};
  parts.tm_year = 126;
  parts.tm_mday = 31;
  parts.tm_hour = 12;
  parts.tm_min = 30;
  parts.tm_isdst = -1;
  EXPECT_EQ(ParseSince("2026-01-31T12:30", kNow), std::mktime(&parts) * kSecond);
  EXPECT_EQ(ParseSince("1s", kNow + 7), kNow + 7 - kSecond);
  for (const char* ever : {"106752d", "4000000000d", "4000000000h"})
    EXPECT_EQ(ParseSince(ever, kNow), 0) << ever;
  for (const char* bad : {"", "m", "-1m", "1x", "yesterday", "2026-13-01", "2026-01-31T"})
    EXPECT_FALSE(ParseSince(bad, kNow)) << bad;
}

class LogindTest : public TemporaryFolderTest {
 protected:
  void Put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
};

TEST_F(LogindTest, IsNoticedWhereItEndsTheSession) {
  EXPECT_EQ(LogindNote(folder_), "");
  Put("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
  EXPECT_EQ(LogindNote(folder_), "");
  Put("/etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_EQ(LogindNote(folder_), "");
  Put("/etc/systemd/logind.conf.d/kill.conf", "[Login]\nKillUserProcesses=yes\n");
  EXPECT_THAT(LogindNote(folder_), HasSubstr("loginctl enable-linger"));
  Put("/etc/systemd/logind.conf.d/z.conf", "[Login]\nKillUserProcesses=no\n");
  EXPECT_EQ(LogindNote(folder_), "");
  Put("/etc/systemd/logind.conf.d/z.conf", "");
  Put("/proc/self/cgroup",
      "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run.scope\n");
  EXPECT_EQ(LogindNote(folder_), "");
}

}  // namespace
}  // namespace hvd
