#include "launcher/elastic_hosts/script_watch.h"

#include <utility>

#include "discovery/discovered_hosts.h"
#include "launcher/elastic_hosts/script_trouble.h"

namespace hvd {

ScriptWatch::ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
                         std::shared_ptr<LocalFamily> family, ScriptWatchTimes times)
    : ScriptWatch(io, std::move(script), std::move(parts), std::move(family), times,
                  ParseDiscoveredHosts, {}) {}

ScriptWatch::ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
                         std::shared_ptr<LocalFamily> family, ScriptWatchTimes times,
                         ReadHosts read, std::vector<HostSpec> known)
    : io_(io),
      script_(std::move(script)),
      parts_(std::move(parts)),
      family_(std::move(family)),
      times_(times),
      read_(std::move(read)),
      known_(std::move(known)),
      pause_(io),
      named_(io, parts_) {}

void ScriptWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  on_answer_ = std::move(on_answer);
  watching_ = std::make_shared<const bool>(true);
  if (known_.empty()) return Run();
  TellHosts(std::move(known_));
}

void ScriptWatch::Stop() {
  watching_.reset();
  pause_.cancel();
  named_.Forget();
  run_.reset();
}

void ScriptWatch::Run() {
  run_ = std::make_unique<ScriptRun>(io_, family_, times_.limits,
                                     [this](ScriptOutcome outcome) { OnOutcome(outcome); });
  run_->Start(script_);
}

void ScriptWatch::RunLater() {
  pause_.expires_after(times_.pause);
  pause_.async_wait([this, watching = std::weak_ptr(watching_)](const asio::error_code& error) {
    if (!error && !watching.expired()) Run();
  });
}

void ScriptWatch::OnOutcome(const ScriptOutcome& outcome) {
  if (auto trouble = TroubleOf(script_.command, outcome, times_.limits))
    return Tell(history_.Bad(*trouble));
  std::vector<std::string> notes;
  auto specs = read_(outcome.output, notes);
  if (!specs.ok()) return Tell(history_.Bad(BadOutput(script_.command, specs.status().message())));
  NoteOnce(notes);
  TellHosts(std::move(*specs));
}

void ScriptWatch::TellHosts(std::vector<HostSpec> specs) {
  named_.Resolve(std::move(specs),
                 [this](std::vector<HostSlots> hosts) { Tell(history_.Good(std::move(hosts))); });
}

void ScriptWatch::Tell(const std::optional<HostAnswer>& answer) {
  RunLater();
  if (answer) on_answer_(*answer);  // which may stop us
}

void ScriptWatch::NoteOnce(const std::vector<std::string>& notes) {
  if (notes == noted_) return;
  noted_ = notes;
  for (const std::string& note : notes) parts_.note("the discovery script: " + note);
}

}  // namespace hvd
