// Runs the ssh program to read the user's configuration (ssh -G) and to connect through other hosts
// (ssh -W, ProxyCommand). Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_PROGRAM_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_PROGRAM_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/ssh_hub.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/process/byte_pump.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// `ssh -G ... -- name`. Pure.
std::vector<std::string> AskConfigCommand(const SshHost& host);
// The command line for config.proxy_jump or proxy_command, whose stdin and stdout are a connection
// to the host; empty: no proxy. Pure.
std::vector<std::string> ProxyCommand(const SshConfig& config, const std::string& config_file);

// A program with stdin and stdout on a socket pair, or with its stdout collected; the tail of its
// stderr is kept.
class SshProgram : public std::enable_shared_from_this<SshProgram> {
 public:
  explicit SshProgram(SshHub& hub) : hub_(hub) {}

  // Called after it has ended and all of its output was read, with the wait status.
  using OnEnd = std::function<void(const SshProgram& program, int status)>;
  // The hub owns a reference while it runs, so `on_end` must not own the hub.
  Status Start(const std::vector<std::string>& argv, OnEnd on_end);
  // hvdrun's end of the socket pair. If not taken, stdout is collected in output().
  UniqueFd ReleaseSocket() { return std::move(socket_); }
  void Collect();
  void Kill();

  bool running() const { return pid_ > 0 && !status_; }
  // It has ended, and all of its output was read.
  bool over() const { return pid_ > 0 && !on_end_; }
  const std::string& output() const { return output_; }
  // The last 4 KiB.
  const std::string& errors() const { return errors_; }

 private:
  void ReportIfOver();

  SshHub& hub_;
  OnEnd on_end_;
  std::shared_ptr<SshProgram> kept_;  // itself, between its end and the end of its output
  UniqueFd socket_;
  std::unique_ptr<BytePump> output_pump_, error_pump_;
  std::string output_, errors_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// Appends and keeps the last 4 KiB.
void KeepTail(std::string& tail, std::string_view bytes);

using OnSshConfig = std::function<void(Result<SshConfig>)>;
// Calls back later. Without an ssh program the answer is OpenSSH's defaults.
void AskSshConfig(const std::shared_ptr<SshHub>& hub, const SshHost& host, OnSshConfig done);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_PROGRAM_H_
