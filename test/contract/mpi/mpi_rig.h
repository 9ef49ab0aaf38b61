// One rank of the tests under mpirun: the plug-in, loaded as libhvd.so does, and the world of all
// ranks.
#ifndef HVD_TEST_CONTRACT_MPI_MPI_RIG_H_
#define HVD_TEST_CONTRACT_MPI_MPI_RIG_H_

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/backends/mpi/mpi_plugin.h"
#include "test/support/deadline.h"

namespace hvd::test {

struct Rig {
  MpiPlugin plugin;
  std::unique_ptr<MpiWorld> world;
  std::unique_ptr<InterHostComm> inter_host;
  bool one_thread = false;
  Duration remind = std::chrono::seconds(60);

  // The sentence why not, or "".
  std::string Open() {
    Result<MpiPlugin> loaded = LoadMpiPlugin(HVD_MPI_FOLDER);
    if (!loaded.ok()) return loaded.status().message();
    plugin = *loaded;
    MpiJoinOptions options{.one_thread = one_thread, .deadline = Soon(), .remind = remind};
    Status status;
    world.reset(plugin.join(&options, &status));
    if (world == nullptr) return status.message();
    Result<std::unique_ptr<InterHostComm>> opened = world->OpenInterHostComm();
    if (!opened.ok()) return opened.status().message();
    inter_host = std::move(*opened);
    return "";
  }
  void Close() {
    inter_host.reset();
    world.reset();
    plugin.finish();
  }

  static TimePoint Soon() { return hvd::Soon(); }
  static TimePoint In(int ms) { return SteadyNow() + std::chrono::milliseconds(ms); }
  std::vector<uint32_t> Everybody() const {
    std::vector<uint32_t> ranks(world->size());
    std::iota(ranks.begin(), ranks.end(), 0u);
    return ranks;
  }
};

// The rig of this process, opened by main.
Rig& TheRig();

// Runs one failure: prints the sentences that the calls gave and leaves without MPI_Finalize.
int RunEnd(const std::string& name);
// Checks the fate of MPI when the application initialised it, at a level of this name.
int RunInApplication(const std::string& level);
// Rank 1 comes only once rank 0 has said that it waits for it.
int RunLate();

}  // namespace hvd::test

#endif  // HVD_TEST_CONTRACT_MPI_MPI_RIG_H_
