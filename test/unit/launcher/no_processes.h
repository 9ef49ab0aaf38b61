// NoProcesses: a ProcessHost for tests of what is above it.
#ifndef HVD_TEST_UNIT_LAUNCHER_NO_PROCESSES_H_
#define HVD_TEST_UNIT_LAUNCHER_NO_PROCESSES_H_

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/agent/workers/worker_set.h"
#include "launcher/process/process_host.h"

namespace hvd {

// Starts nothing: every worker gets a pid, and keeps the signals it was sent.
class NoProcesses final : public ProcessHost {
 public:
  SpawnOutcome Spawn(uint32_t worker, const SpawnRequest& request) override {
    requests.push_back(request);
    if (worker == refused) return {0, ENOENT, "the command was not found"};
    return {static_cast<pid_t>(100 + worker), 0, ""};
  }
  void Signal(uint32_t worker, int signal) override { signals.emplace_back(worker, signal); }
  void Kill(uint32_t) override {}
  void HoldOutput(bool) override {}
  bool OutputEnded() const override { return true; }

  uint32_t refused = UINT32_MAX;
  std::vector<SpawnRequest> requests;
  std::vector<std::pair<uint32_t, int>> signals;
};

// Of a job of six ranks: 4 and 5 in slots 0 and 1 of this host.
inline StartJob StartOfRanks4And5() {
  StartJob start;
  start.ranks.size = 6;
  start.program.argv = {"train"};
  start.ranks.slots = {{4, 0, 0, 2, 0, 1}, {5, 0, 1, 2, 0, 1}};
  return start;
}

// Keeps the messages of a set of workers.
class RecordedWorkers : public WorkerSetOwner {
 public:
  void Send(const ToDriver& message) override { sent.push_back(message); }
  void SendOutput(uint32_t, OutputStream, std::string_view, std::string_view) override {}
  uint64_t CommitsOf(uint32_t) const override { return 0; }
  bool OnWorkerExit(uint32_t, int, bool) override { return false; }
  void OnWorkerOver() override {}

  template <typename Message>
  std::vector<Message> Sent() const {
    std::vector<Message> found;
    for (const ToDriver& message : sent) {
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    }
    return found;
  }

  std::vector<ToDriver> sent;
};

}  // namespace hvd

#endif  // HVD_TEST_UNIT_LAUNCHER_NO_PROCESSES_H_
