// A mesh in a forked child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/net/mesh/mesh.h"
#include "test/fakes/memory_kv_store.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

std::unique_ptr<Mesh> OpenMesh(uint32_t rank, KvStore& store) {
  MeshOptions options{.rank = rank, .generation = 7, .job_key = "the key of the job"};
  options.listen.addresses = {"127.0.0.1"};
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(std::move(options), store);
  EXPECT_TRUE(mesh.ok()) << mesh.status().message();
  return mesh.ok() ? std::move(*mesh) : nullptr;
}

// From `a` to `b`, which is rank `rank_b`; they are ranks 0 and 1. Too much for the connection that
// both directions share.
void SendBytes(Mesh& a, Mesh& b, uint32_t rank_b) {
  const TimePoint soon = Soon();
  std::array<std::byte, 4000> sent{std::byte{42}}, received{};
  MeshHandle in = b.Receive(1 - rank_b, {1, 1}, received);
  MeshHandle out = a.Send(rank_b, {1, 1}, sent);
  Status status = a.Wait(out, soon);
  EXPECT_TRUE(status.ok()) << status.message();
  status = b.Wait(in, soon);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(received, sent);
}

int OpenConnections() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.rfind("socket:", 0) == 0 || target == "anon_inode:[eventpoll]") ++found;
  }
  return found;
}

// Otherwise a data loader that outlives its rank would keep the peers from noticing the death.
TEST(MeshFork, AForkedChildHoldsNoConnection) {
  test::MemoryKvStore store;
  std::unique_ptr<Mesh> a = OpenMesh(0, store), b = OpenMesh(1, store);
  SendBytes(*a, *b, 1);
  SendBytes(*b, *a, 0);
  EXPECT_GE(OpenConnections(), 8);  // for each: the listener, two connections, the epoll
  pid_t child = ::fork();
  if (child == 0) ::_exit(OpenConnections());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "connections in the child";
  SendBytes(*a, *b, 1);
  SendBytes(*b, *a, 0);
}

}  // namespace
}  // namespace hvd
