#include "launcher/stall/outside_stacks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "launcher/process/one_process.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/spawn.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kMostRead = 256 * 1024;
constexpr const char* kProgram = "py-spy";

// PATH and the folder of this program, which contains py-spy in a bundle of hvdrun.
std::string Path() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return GetEnv("PATH").value_or(kDefaultPath) + (error ? "" : ":" + own.string());
}

// Whether the user has disabled stacks.
bool MayNotBeRead(pid_t pid) {
  const std::string environment = ReadProcFile(Format("{}/environ", pid));
  return VariableIn(environment, "HVD_STALL_CHECK_STACKS").value_or("1") == "0";
}

}  // namespace

bool OutsideStacks::IsInstalled() { return !FindProgram(kProgram, Path(), "/").path.empty(); }

void OutsideStacks::Ask(const std::vector<pid_t>& pids, std::function<void(const Texts&)> done,
                        Duration limit, Errors errors, Frames frames) {
  Forget();
  done_ = std::move(done);
  const bool installed = !pids.empty() && IsInstalled();
  for (pid_t pid : pids) {
    if (installed && !MayNotBeRead(pid)) (void)Begin(pid, Path(), errors, frames);
  }
  if (readings_.empty()) return asio::post(io_, [this] { End(); });
  limit_timer_.expires_after(limit);
  limit_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) End();
  });
}

bool OutsideStacks::Begin(pid_t subject, const std::string& path, Errors errors, Frames frames) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  // py-spy cannot stop a process that is already stopped, and would show nothing.
  const std::optional<ProcessInfo> process = LookAtProcess(subject);
  const bool is_stopped = process && process->state == 'T';
  SpawnRequest request;
  request.argv = {kProgram,
                  "dump",
                  frames == Frames::kNative && !is_stopped ? "--native" : "--nonblocking",
                  "--full-filenames",
                  "--pid",
                  std::to_string(subject)};
  request.environment = {"PATH=" + path, "LC_ALL=C"};
  request.directory = std::string(1, '/');  // g++ 12 warns about memcpy in an assigned literal
  const SpawnOutcome spawned =
      SpawnProgram(request, {.stdout_fd = write_end.get(),
                             .stderr_fd = errors == Errors::kKept ? write_end.get() : null.get()});
  if (spawned.pid == 0) return false;
  auto reading = std::make_unique<Reading>();
  reading->subject = subject;
  reading->child = spawned.pid;
  Reading* const own = reading.get();
  reading->output = std::make_unique<BytePump>(
      io_, std::move(read_end), UniqueFd(),
      BytePumpHandlers{[this, own](std::string_view bytes) { HandleOutput(own, bytes); }, [] {},
                       [this, own] {
                         own->output->Close();
                         const bool all = std::ranges::none_of(
                             readings_, [](const auto& other) { return other->output->open(); });
                         if (all) asio::post(io_, [this] { End(); });
                       }});
  readings_.push_back(std::move(reading));
  return true;
}

void OutsideStacks::HandleOutput(Reading* reading, std::string_view bytes) {
  reading->text += bytes.substr(0, kMostRead - std::min(kMostRead, reading->text.size()));
}

void OutsideStacks::End() {
  if (!done_) return;
  Texts texts;
  for (const auto& reading : readings_) texts[reading->subject] = reading->text;
  const auto done = std::exchange(done_, nullptr);
  Forget();
  done(texts);
}

// Code that reaps all children of this process may have reaped it already.
void OutsideStacks::Forget() {
  limit_timer_.cancel();
  for (const auto& reading : readings_) {
    if (reading->output->open()) (void)::kill(reading->child, SIGKILL);
    reading->output->Close();
    (void)::waitpid(reading->child, nullptr, WNOHANG);
  }
  readings_.clear();
  done_ = nullptr;
}

}  // namespace hvd
