#include "launcher/elastic_hosts/script_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "discovery/discovered_hosts.h"
#include "discovery/words.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/output/text/phrases.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/spawn.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMaxOutput = 4096;
// Background processes of the script may hold its pipes open for ever.
constexpr auto kLastOutputWait = std::chrono::milliseconds(200);

// A guardian in the script's process group ends the group when it reads the end of its stdin: when
// we close our side or are killed. The script itself has no stdin.
constexpr const char* kGuarded =
    "exec 3<&0 </dev/null; "
    "(read -r _ <&3; kill -s KILL -- -$$) >/dev/null 2>&1 & "
    "exec 3<&-; exec /bin/sh -c \"$1\"";

struct PipePair {
  UniqueFd read, write;
};

bool MakePipe(PipePair& made) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  made.read.Reset(ends[0]);
  made.write.Reset(ends[1]);
  return true;
}

ProcessEnd FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {true, WTERMSIG(status)};
  return {false, WEXITSTATUS(status)};
}

}  // namespace

ScriptRun::ScriptRun(asio::io_context& io, std::shared_ptr<LocalFamily> family, ScriptLimits limits,
                     std::function<void(ScriptOutcome)> done)
    : io_(io),
      family_(std::move(family)),
      limits_(limits),
      done_(std::move(done)),
      child_signal_(io, SIGCHLD),
      limit_(io) {}

ScriptRun::~ScriptRun() {
  EndProcesses();
  // A pump with a queued handler must not be destroyed before it.
  for (std::unique_ptr<BytePump>* pump : {&output_, &errors_}) {
    if (!*pump) continue;
    (*pump)->Close();
    asio::post(io_, [kept = std::shared_ptr<BytePump>(std::move(*pump))] {});
  }
}

void ScriptRun::Start(const Script& script) {
  PipePair out, err, guard;
  if (!MakePipe(out) || !MakePipe(err) || !MakePipe(guard)) {
    outcome_.reason = std::string("no pipe could be made: ") + std::strerror(errno);
    return Finish(How::kNotStarted);
  }
  WaitForChild();
  const SpawnRequest request{
      {"/bin/sh", "-c", kGuarded, "hvdrun", script.command}, script.environment, script.directory};
  const SpawnOutcome child =
      SpawnProgram(request, {guard.read.get(), out.write.get(), err.write.get()});
  if (child.pid == 0) {
    outcome_.reason = child.reason;
    return Finish(How::kNotStarted);
  }
  pid_ = child.pid;
  family_->Add(pid_);
  guard_ = std::move(guard.write);
  output_ = Reader(
      std::move(out.read), [this](std::string_view bytes) { OnOutput(bytes); }, output_ended_);
  errors_ = Reader(
      std::move(err.read),
      [this](std::string_view bytes) {
        outcome_.printed.append(bytes);
        if (outcome_.printed.size() > 2 * kMaxOutput)
          outcome_.printed.erase(0, outcome_.printed.size() - kMaxOutput);
      },
      errors_ended_);
  limit_.expires_after(limits_.time);
  limit_.async_wait([this, here = std::weak_ptr(here_)](const asio::error_code& error) {
    if (!error && !here.expired()) Finish(How::kTooSlow);
  });
}

std::unique_ptr<BytePump> ScriptRun::Reader(UniqueFd end,
                                            std::function<void(std::string_view)> on_bytes,
                                            bool& ended) {
  const std::weak_ptr here = here_;
  return std::make_unique<BytePump>(
      io_, std::move(end), UniqueFd(),
      BytePumpHandlers{[here, on_bytes = std::move(on_bytes)](std::string_view bytes) {
                         if (!here.expired()) on_bytes(bytes);
                       },
                       [] {},
                       [this, here, &ended] {
                         if (here.expired()) return;
                         ended = true;
                         EndIfOver();
                       }});
}

void ScriptRun::OnOutput(std::string_view bytes) {
  if (finished_) return;
  outcome_.output.append(bytes.substr(0, limits_.output + 1 - outcome_.output.size()));
  if (outcome_.output.size() > limits_.output) Finish(How::kTooMuch);
}

void ScriptRun::WaitForChild() {
  child_signal_.async_wait([this, here = std::weak_ptr(here_)](const asio::error_code& error, int) {
    if (error || here.expired()) return;
    family_->Reap();
    WaitForChild();
    EndIfOver();
  });
}

// The run is over once the script is reaped and its output has ended.
void ScriptRun::EndIfOver() {
  if (finished_ || pid_ == 0) return;
  family_->Reap();
  const std::optional<int> status = family_->StatusOf(pid_);
  if (!status) return;
  outcome_.end = FromWaitStatus(*status);
  if ((output_ended_ && errors_ended_) || draining_) return Finish(How::kExited);
  limit_.expires_after(kLastOutputWait);
  limit_.async_wait([this, here = std::weak_ptr(here_)](const asio::error_code& error) {
    if (error || here.expired()) return;
    draining_ = true;
    EndIfOver();
  });
}

void ScriptRun::Finish(How how) {
  if (finished_) return;
  finished_ = true;
  outcome_.how = how;
  EndProcesses();
  limit_.cancel();
  child_signal_.cancel();
  if (output_) output_->Close();
  if (errors_) errors_->Close();
  asio::post(io_, [this, here = std::weak_ptr(here_)] {
    if (here.expired()) return;
    const auto done = std::move(done_);  // which may end this object
    done(std::move(outcome_));
  });
}

void ScriptRun::EndProcesses() {
  if (pid_ != 0) {
    // Until it is reaped, the pid is the script's. Some of its processes may have left the process
    // group.
    if (!family_->StatusOf(pid_)) {
      const std::vector<ProcessInfo> below = DescendantsOf(pid_, ListProcesses());
      ::kill(-pid_, SIGKILL);
      for (const ProcessInfo& process : below) SignalProcess(process, SIGKILL);
    }
    family_->Remove(pid_);
    pid_ = 0;
  }
  guard_.Reset();
}

namespace {

using How = ScriptOutcome::How;

std::string ScriptText(const std::string& command) {
  return "the discovery script " + Quoted(command, kMaxShownPath);
}

// ", which said 'no such cluster'": the last line that has text.
std::string LastOutput(std::string_view printed) {
  std::string_view last;
  LineReader lines(printed);
  while (const auto line = lines.Next()) {
    if (const std::string_view text = Trimmed(*line); !text.empty()) last = text;
  }
  return last.empty() ? "" : ", and said " + Quoted(last, kMaxShownPath);
}

// How a run of a discovery script failed. Pure. Nothing if the script ended with 0; its output may
// still be invalid.
std::optional<SourceTrouble> TroubleOf(const std::string& command, const ScriptOutcome& outcome,
                                       const ScriptLimits& limits) {
  const std::string script = ScriptText(command);
  switch (outcome.how) {
    case How::kNotStarted:
      return SourceTrouble{"not started", script + " cannot be started: " + outcome.reason};
    case How::kTooSlow:
      return SourceTrouble{"too slow", script + " took longer than " + SecondsText(limits.time) +
                                           " and was ended" + LastOutput(outcome.printed)};
    case How::kTooMuch:
      return SourceTrouble{
          "too much", Format("{} printed more than {} bytes and was ended", script, limits.output)};
    case How::kExited: break;
  }
  if (outcome.end.ok()) return std::nullopt;
  const std::string end =
      (outcome.end.by_signal ? "signal " : "exit code ") + std::to_string(outcome.end.value);
  // The exit codes by which a shell reports that there is no such program, or none that may be run.
  const bool hopeless =
      !outcome.end.by_signal && (outcome.end.value == 126 || outcome.end.value == 127);
  return SourceTrouble{end, script + " ended with " + end + LastOutput(outcome.printed), hopeless};
}

// The error for output that is not a list of hosts. `reason`: from ParseDiscoveredHosts().
SourceTrouble BadOutput(const std::string& command, const std::string& reason) {
  return {"bad output", ScriptText(command) + " printed no list of hosts: " + reason};
}

}  // namespace

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
  ReportHosts(std::move(known_));
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
    return Report(history_.Bad(*trouble));
  std::vector<std::string> notes;
  auto specs = read_(outcome.output, notes);
  if (!specs.ok())
    return Report(history_.Bad(BadOutput(script_.command, specs.status().message())));
  NoteOnce(notes);
  ReportHosts(std::move(*specs));
}

void ScriptWatch::ReportHosts(std::vector<HostSpec> specs) {
  named_.Resolve(std::move(specs),
                 [this](std::vector<HostSlots> hosts) { Report(history_.Good(std::move(hosts))); });
}

void ScriptWatch::Report(const std::optional<HostAnswer>& answer) {
  RunLater();
  if (answer) on_answer_(*answer);  // which may stop this watch
}

void ScriptWatch::NoteOnce(const std::vector<std::string>& notes) {
  if (notes == noted_) return;
  noted_ = notes;
  for (const std::string& note : notes) parts_.note("the discovery script: " + note);
}

}  // namespace hvd
