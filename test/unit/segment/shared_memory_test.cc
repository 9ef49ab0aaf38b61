// The same tests on memfd and on its fallbacks: an unlinked file on disk and one on tmpfs.
#include "runtime/segment/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/base/env.h"

namespace hvd {
namespace {

constexpr size_t kBytes = 3 * 4096 + 5;

enum class Kind { kMemfd, kFile, kFileOnTmpfs };

class SharedMemory : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::kFileOnTmpfs) return;
    former_ = GetEnv("TMPDIR");
    ::setenv("TMPDIR", "/dev/shm", 1);
    if (!CreateUnlinkedFile(1).ok()) GTEST_SKIP() << "no tmpfs at /dev/shm on this machine";
  }
  void TearDown() override {
    if (GetParam() != Kind::kFileOnTmpfs) return;
    former_ ? ::setenv("TMPDIR", former_->c_str(), 1) : ::unsetenv("TMPDIR");
  }
  Result<UniqueFd> Create(size_t bytes) {
    return GetParam() == Kind::kMemfd ? CreateSharedMemory("hvd-test", bytes)
                                      : CreateUnlinkedFile(bytes);
  }

 private:
  std::optional<std::string> former_;
};

off_t SizeOf(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_size;
}

TEST_P(SharedMemory, IsZeroSizedRightAndClosedOnExec) {
  Result<UniqueFd> fd = Create(kBytes);
  ASSERT_TRUE(fd.ok()) << fd.status().message();
  EXPECT_EQ(SizeOf(fd->get()), static_cast<off_t>(kBytes));
  EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
  Result<Mapping> memory = Mapping::Map(fd->get(), kBytes);
  ASSERT_TRUE(memory.ok());
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(memory->data()[i], std::byte{0});
}

TEST_P(SharedMemory, HasNoNameThatCouldBeLeftBehind) {
  Result<UniqueFd> fd = Create(1);
  ASSERT_TRUE(fd.ok());
  struct stat info {};
  ASSERT_EQ(::fstat(fd->get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
}

TEST_P(SharedMemory, TwoMappingsSeeOneMemoryWithoutTheDescriptor) {
  Result<UniqueFd> fd = Create(kBytes);
  ASSERT_TRUE(fd.ok());
  Result<Mapping> a = Mapping::Map(fd->get(), kBytes), b = Mapping::Map(fd->get(), kBytes);
  ASSERT_TRUE(a.ok() && b.ok());
  fd->Reset();
  a->data()[kBytes - 1] = std::byte{42};
  EXPECT_EQ(b->data()[kBytes - 1], std::byte{42});
}

TEST_P(SharedMemory, ReservesEveryPage) {
  Result<UniqueFd> fd = Create(64 * 4096);
  ASSERT_TRUE(fd.ok());
  ASSERT_TRUE(ReservePages(fd->get(), 64 * 4096).ok());
  struct stat info {};
  ASSERT_EQ(::fstat(fd->get(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 64 * 4096);
  EXPECT_EQ(info.st_size, 64 * 4096);
}

TEST_P(SharedMemory, SealingIsOkEverywhereAndHoldsWhereItCan) {
  Result<UniqueFd> fd = Create(kBytes);
  ASSERT_TRUE(fd.ok());
  Status sealed = SealSize(fd->get());
  ASSERT_TRUE(sealed.ok()) << sealed.message();
  EXPECT_TRUE(SealSize(fd->get()).ok()) << "twice is as good as once";
  if (GetParam() != Kind::kMemfd) return;
  EXPECT_NE(::ftruncate(fd->get(), 1), 0);
  EXPECT_NE(::ftruncate(fd->get(), 1 << 20), 0);
  EXPECT_EQ(SizeOf(fd->get()), static_cast<off_t>(kBytes));
}

INSTANTIATE_TEST_SUITE_P(, SharedMemory,
                         ::testing::Values(Kind::kMemfd, Kind::kFile, Kind::kFileOnTmpfs),
                         [](const auto& tested) -> std::string {
                           if (tested.param == Kind::kMemfd) return "Memfd";
                           return tested.param == Kind::kFile ? "File" : "FileOnTmpfs";
                         });

TEST(SharedMemoryErrors, ReportAttempts) {
  Result<UniqueFd> fd = CreateSharedMemory("hvd-test", 4096);
  ASSERT_TRUE(fd.ok());
  EXPECT_FALSE(Mapping::Map(-1, 4096).ok());
  EXPECT_NE(Mapping::Map(-1, 4096).status().message().find("4096"), std::string::npos);
  EXPECT_FALSE(Mapping::Map(fd->get(), 0).ok());
  EXPECT_FALSE(ReservePages(-1, 4096).ok());
  std::optional<std::string> former = GetEnv("TMPDIR");
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  Result<UniqueFd> nowhere = CreateUnlinkedFile(1);
  former ? ::setenv("TMPDIR", former->c_str(), 1) : ::unsetenv("TMPDIR");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.status().message().find("/nowhere/at/all"), std::string::npos);
}

TEST(MappingTest, ContainsKnowsItsEnds) {
  Result<UniqueFd> fd = CreateSharedMemory("hvd-test", 4096);
  Result<Mapping> made = Mapping::Map(fd->get(), 4096);
  ASSERT_TRUE(made.ok());
  const Mapping& memory = *made;
  const std::byte* at = memory.data();
  EXPECT_TRUE(memory.Contains(at, 4096));
  EXPECT_FALSE(memory.Contains(at, 4097));
  EXPECT_TRUE(memory.Contains(at + 4095, 1));
  EXPECT_FALSE(memory.Contains(at + 4095, 2));
  EXPECT_TRUE(memory.Contains(at + 4096, 0));
  EXPECT_FALSE(memory.Contains(at + 1, SIZE_MAX));
  EXPECT_FALSE(memory.Contains(at - 1, 1));
  EXPECT_FALSE(Mapping().Contains(nullptr, 0));
}

TEST(MappingTest, MovesItsMemory) {
  Result<UniqueFd> fd = CreateSharedMemory("hvd-test", 4096);
  Result<Mapping> made = Mapping::Map(fd->get(), 4096);
  std::byte* data = made->data();
  Mapping moved = std::move(*made);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(made->data(), nullptr);
  Mapping other;
  other = std::move(moved);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.size(), 4096u);
}

}  // namespace
}  // namespace hvd
