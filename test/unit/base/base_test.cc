// The small parts of the floor: Status, Result, the clocks, the environment, log levels, owned
// descriptors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

TEST(Status, IsOkOrHasASentence) {
  EXPECT_TRUE(Status::Ok().ok());
  EXPECT_EQ(Status::Ok().message(), "");
  Status status = Aborted("rank 1 died");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(status.message(), "rank 1 died");
}

TEST(Status, SystemErrorsKnowWhenMemoryIsTheReason) {
  EXPECT_EQ(SystemError("x", ENOMEM).code(), Code::kOutOfMemory);
  EXPECT_EQ(SystemError("x", ENOSPC).code(), Code::kOutOfMemory);
  EXPECT_EQ(SystemError("x", EPERM).code(), Code::kInternal);
  EXPECT_EQ(SystemError("opening a", ENOENT).message(), "opening a: No such file or directory");
}

TEST(Result, HoldsAValueOrTheReason) {
  Result<std::unique_ptr<int>> value(std::make_unique<int>(3));
  ASSERT_TRUE(value.ok());
  EXPECT_TRUE(value.status().ok());
  std::unique_ptr<int> moved = std::move(value).value();
  EXPECT_EQ(*moved, 3);
  Result<int> error(Internal("no"));
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.status().message(), "no");
}

TEST(Clock, TheSteadyOneNeverGoesBack) {
  SteadyClock clock;
  TimePoint before = SteadyNow(), between = clock.Now(), after = SteadyNow();
  EXPECT_LE(before, between);
  EXPECT_LE(between, after);
}

TEST(Clock, TheManualOneMovesWhenTold) {
  ManualClock clock;
  TimePoint start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(std::chrono::milliseconds(5));
  EXPECT_EQ(clock.Now() - start, std::chrono::milliseconds(5));
}

TEST(Env, TellsUnsetFromEmpty) {
  ::unsetenv("HVD_TEST_VARIABLE");
  EXPECT_FALSE(GetEnv("HVD_TEST_VARIABLE").has_value());
  ::setenv("HVD_TEST_VARIABLE", "", 1);
  EXPECT_EQ(GetEnv("HVD_TEST_VARIABLE"), "");
  ::setenv("HVD_TEST_VARIABLE", "a=b", 1);
  auto all = AllEnv();
  EXPECT_EQ(std::count(all.begin(), all.end(),
                       std::pair<std::string, std::string>("HVD_TEST_VARIABLE", "a=b")),
            1);
  ::unsetenv("HVD_TEST_VARIABLE");
}

TEST(Log, LevelsAreReadInAnyCase) {
  EXPECT_EQ(ParseLogLevel("TRACE", LogLevel::kWarning), LogLevel::kTrace);
  EXPECT_EQ(ParseLogLevel("Error", LogLevel::kWarning), LogLevel::kError);
  EXPECT_EQ(ParseLogLevel("fatal", LogLevel::kWarning), LogLevel::kFatal);
  EXPECT_EQ(ParseLogLevel("", LogLevel::kWarning), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("warn", LogLevel::kDebug), LogLevel::kDebug);
}

TEST(Log, TextIsNeverAFormat) {
  testing::internal::CaptureStderr();
  SetLog({LogLevel::kWarning, "rank 3"});
  LogInfo("dropped");
  LogWarning("100 % {} %s");
  std::string written = testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("100 % {} %s"), written.npos) << written;
  EXPECT_NE(written.find("rank 3"), written.npos) << written;
  EXPECT_EQ(written.find("dropped"), written.npos) << written;
}

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesExactlyOnce) {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    UniqueFd first(fd);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(second.get(), fd);
    second = std::move(second);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
  UniqueFd kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int released = kept.Release();
  kept.Reset();
  EXPECT_TRUE(IsOpen(released));
  ::close(released);
}

}  // namespace
}  // namespace hvd
