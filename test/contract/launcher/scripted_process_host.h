// ScriptedProcessHost: a ProcessHost whose workers do what a script says: "out:TEXT", "err:TEXT",
// "exit:N", "signal:N", "daemon" (a grandchild keeps the pipes and writes "late\n" to stdout when
// told), "hang". One script per program name.
#ifndef HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_PROCESS_HOST_H_
#define HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_PROCESS_HOST_H_

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/process/process_host.h"

namespace hvd {

class ScriptedProcessHost final : public ProcessHost {
 public:
  using Script = std::vector<std::string>;

  ScriptedProcessHost(asio::io_context& io, ProcessObserver& observer,
                      std::map<std::string, Script> scripts)
      : io_(io), observer_(observer), scripts_(std::move(scripts)) {}

  SpawnOutcome Spawn(uint32_t worker, const SpawnRequest& request) override {
    auto script = scripts_.find(request.argv[0]);
    if (script == scripts_.end())
      return {0, ENOENT, "the command '" + request.argv[0] + "' was not found"};
    Worker& made = workers_[worker];
    made.pid = static_cast<pid_t>(1000 + worker);
    for (const std::string& step : script->second) {
      asio::post(io_, [this, worker, step] { Play(worker, step); });
    }
    return {made.pid, 0, ""};
  }
  void Signal(uint32_t worker, int signal) override {
    if (!workers_[worker].ended)
      asio::post(io_, [this, worker, signal] { End(worker, {true, signal}); });
  }
  void Kill(uint32_t worker) override {
    Signal(worker, SIGKILL);
    asio::post(io_, [this, worker] { ClosePipes(worker); });
  }
  void HoldOutput(bool hold) override {
    hold_ = hold;
    if (hold) return;
    for (auto& [worker, stream, bytes] : std::exchange(kept_, {}))
      observer_.OnOutput(worker, stream, bytes);
    for (auto& [number, worker] : workers_) {
      if (worker.ended && !worker.daemon) ClosePipes(number);
    }
  }
  bool OutputEnded() const override {
    for (const auto& [number, worker] : workers_) {
      if (!worker.pipes_closed) return false;
    }
    return true;
  }
  // Writes the late output of a daemon.
  void WriteLate(uint32_t worker) { Output(worker, OutputStream::kStdout, "late\n"); }

 private:
  struct Worker {
    pid_t pid = 0;
    bool ended = false, reported = false, pipes_closed = false, daemon = false;
  };

  void Play(uint32_t worker, const std::string& step) {
    if (workers_[worker].ended) return;
    std::string verb = step.substr(0, step.find(':')),
                value = step.substr(std::min(step.size(), verb.size() + 1));
    if (verb == "out") Output(worker, OutputStream::kStdout, value);
    if (verb == "err") Output(worker, OutputStream::kStderr, value);
    if (verb == "daemon") workers_[worker].daemon = true;
    if (verb == "exit") End(worker, {false, std::stoi(value)});
    if (verb == "signal") End(worker, {true, std::stoi(value)});
  }
  void Output(uint32_t worker, OutputStream stream, const std::string& bytes) {
    if (hold_) {
      kept_.emplace_back(worker, stream, bytes);
    } else {
      observer_.OnOutput(worker, stream, bytes);
    }
  }
  void End(uint32_t worker, ProcessEnd end) {
    Worker& w = workers_[worker];
    if (std::exchange(w.ended, true)) return;
    if (!w.daemon) ClosePipes(worker);
    observer_.OnExit(worker, end, SteadyNow());
  }
  void ClosePipes(uint32_t worker) {
    // Output that was not read yet comes before the end.
    if (hold_ || std::exchange(workers_[worker].pipes_closed, true)) return;
    observer_.OnOutputEnd(worker, OutputStream::kStdout);
    observer_.OnOutputEnd(worker, OutputStream::kStderr);
  }

  asio::io_context& io_;
  ProcessObserver& observer_;
  std::map<std::string, Script> scripts_;
  std::map<uint32_t, Worker> workers_;
  std::vector<std::tuple<uint32_t, OutputStream, std::string>> kept_;
  bool hold_ = false;
};

}  // namespace hvd

#endif  // HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_PROCESS_HOST_H_
