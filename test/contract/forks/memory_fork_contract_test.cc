// Shared memory in a forked child, on memfd and on its fallbacks: an unlinked file on disk and one
// on tmpfs.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "runtime/base/env.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

constexpr size_t kBytes = 3 * 4096 + 5;

void ExpectPrivateInAChild(Result<UniqueFd> fd) {
  ASSERT_TRUE(fd.ok()) << fd.status().message();
  Result<Mapping> memory = Mapping::Map(fd->get(), kBytes);
  ASSERT_TRUE(memory.ok());
  memory->data()[0] = std::byte{1};
  pid_t child = ::fork();
  if (child == 0) {
    memory->MakePrivate(fd->get());
    bool seen = memory->data()[0] == std::byte{1};
    std::memset(memory->data(), 7, kBytes);
    ::_exit(seen && memory->data()[kBytes - 1] == std::byte{7} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child reads the bytes it inherited and may write";
  EXPECT_EQ(memory->data()[0], std::byte{1});
  EXPECT_EQ(memory->data()[kBytes - 1], std::byte{0});
}

class MemoryFork : public ::testing::Test {
 protected:
#if defined(__SANITIZE_THREAD__)
  void SetUp() override { GTEST_SKIP() << "ThreadSanitizer does not follow a fork"; }
#endif
};

TEST_F(MemoryFork, WritesAfterMakePrivateStayInTheChildOnMemfd) {
  ExpectPrivateInAChild(CreateSharedMemory("hvd-test", kBytes));
}

TEST_F(MemoryFork, WritesAfterMakePrivateStayInTheChildOnAFile) {
  ExpectPrivateInAChild(CreateUnlinkedFile(kBytes));
}

TEST_F(MemoryFork, WritesAfterMakePrivateStayInTheChildOnTmpfs) {
  std::optional<std::string> former = GetEnv("TMPDIR");
  ::setenv("TMPDIR", "/dev/shm", 1);
  Result<UniqueFd> fd = CreateUnlinkedFile(kBytes);
  former ? ::setenv("TMPDIR", former->c_str(), 1) : ::unsetenv("TMPDIR");
  if (!fd.ok()) GTEST_SKIP() << "no tmpfs at /dev/shm on this machine";
  ExpectPrivateInAChild(std::move(fd));
}

}  // namespace
}  // namespace hvd
