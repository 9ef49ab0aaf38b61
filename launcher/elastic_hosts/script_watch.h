// ScriptWatch: runs a discovery script repeatedly for the host list.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_SCRIPT_WATCH_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/answer_history.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/elastic_hosts/script_run.h"
#include "launcher/elastic_hosts/watch_parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

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
  void TellHosts(std::vector<HostSpec> specs);
  void OnOutcome(const ScriptOutcome& outcome);
  void Tell(const std::optional<HostAnswer>& answer);
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
