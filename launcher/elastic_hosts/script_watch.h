// ScriptWatch: runs a discovery script repeatedly for the host list.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_WATCH_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/process/byte_pump.h"
#include "launcher/process/local_family.h"
#include "launcher/process/process_end.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// ScriptRun: one run of a user's script, with limits on time and output. The script has its own
// session and no stdin, and never outlives this object or this process.
//
// One thread, that of the io_context, and the main thread of the process (spawn.h).
struct Script {
  std::string command;  // for /bin/sh -c
  std::vector<std::string> environment;
  std::string directory;
};

struct ScriptLimits {
  Duration time = std::chrono::seconds(20);
  size_t output = size_t{1} << 20;  // bytes of stdout
};

struct ScriptOutcome {
  enum class How {
    kExited,      // see `end`
    kTooSlow,     // killed at the time limit
    kTooMuch,     // killed at the output limit
    kNotStarted,  // see `reason`
  };
  How how = How::kExited;
  ProcessEnd end = {};
  std::string output;   // stdout
  std::string printed;  // the tail of stderr
  std::string reason = {};
};

class ScriptRun {
 public:
  // `done` is called once from the io_context, unless the object is destroyed first.
  ScriptRun(asio::io_context& io, std::shared_ptr<LocalFamily> family, ScriptLimits limits,
            std::function<void(ScriptOutcome)> done);
  // Kills the script if it is running.
  ~ScriptRun();
  ScriptRun(const ScriptRun&) = delete;

  // Once.
  void Start(const Script& script);

 private:
  using How = ScriptOutcome::How;

  void WaitForChild();
  void OnOutput(std::string_view bytes);
  void EndIfOver();
  void Finish(How how);
  void EndProcesses();
  std::unique_ptr<BytePump> Reader(UniqueFd end, std::function<void(std::string_view)> on_bytes,
                                   bool& ended);

  asio::io_context& io_;
  std::shared_ptr<LocalFamily> family_;
  ScriptLimits limits_;
  std::function<void(ScriptOutcome)> done_;
  asio::signal_set child_signal_;
  asio::steady_timer limit_;
  // Lets pending handlers detect that this object is gone.
  std::shared_ptr<const bool> here_ = std::make_shared<const bool>(true);
  std::unique_ptr<BytePump> output_, errors_;
  UniqueFd guard_;  // closing it makes the guardian kill the script's process group
  pid_t pid_ = 0;
  ScriptOutcome outcome_;
  bool output_ended_ = false, errors_ended_ = false, draining_ = false, finished_ = false;
};

struct ScriptWatchTimes {
  Duration pause = std::chrono::seconds(1);  // from the end of a run to the next
  ScriptLimits limits = {};                  // of each run
};

// Parses the output; appends messages for the log to `notes`.
using ReadHosts = std::function<Result<std::vector<HostSpec>>(const std::string& output,
                                                              std::vector<std::string>& notes)>;

class ScriptWatch final : public HostWatch {
 public:
  // `family`: shared by all children of this process.
  ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
              std::shared_ptr<LocalFamily> family, ScriptWatchTimes times = {});
  // For a command with another output format. `known`: the hosts until its first run, which is one
  // pause from now.
  ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
              std::shared_ptr<LocalFamily> family, ScriptWatchTimes times, ReadHosts read,
              std::vector<HostSpec> known);
  ~ScriptWatch() override { Stop(); }

  void Start(std::function<void(const HostAnswer&)> on_answer) override;
  void Stop() override;

 private:
  void Run();
  void RunLater();
  void ReportHosts(std::vector<HostSpec> specs);
  void OnOutcome(const ScriptOutcome& outcome);
  void Report(const std::optional<HostAnswer>& answer);
  void NoteOnce(const std::vector<std::string>& notes);

  asio::io_context& io_;
  const Script script_;
  WatchParts parts_;
  const std::shared_ptr<LocalFamily> family_;
  const ScriptWatchTimes times_;
  const ReadHosts read_;
  std::vector<HostSpec> known_;
  std::function<void(const HostAnswer&)> on_answer_;
  // Lets pending handlers detect that the watch has stopped.
  std::shared_ptr<const bool> watching_;
  asio::steady_timer pause_;
  NamedHosts named_;
  AnswerHistory history_;
  std::unique_ptr<ScriptRun> run_;
  std::vector<std::string> noted_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_WATCH_H_
