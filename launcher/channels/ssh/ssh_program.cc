#include "launcher/channels/ssh/ssh_program.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cerrno>
#include <climits>
#include <utility>

#include "configs/message_text.h"
#include "launcher/channels/ssh/ssh_reasons.h"
#include "launcher/process/spawn.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kTailBytes = 4096;
const char* const kGateOfQuestions = "ssh -G";

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (const auto& [name, value] : AllEnv()) {
    if (name != "SSH_ASKPASS_REQUIRE") environment.push_back(name + "=" + value);
  }
  environment.push_back("SSH_ASKPASS_REQUIRE=never");  // no window that asks for a passphrase
  return environment;
}

SshLocal ThisUser() {
  SshLocal local;
  local.user_id = ::getuid();
  if (const passwd* entry = ::getpwuid(local.user_id); entry != nullptr) {
    local.home = entry->pw_dir;
    local.user = entry->pw_name;
  }
  if (local.home.empty()) local.home = GetEnv("HOME").value_or("/");
  if (local.user.empty()) local.user = GetEnv("USER").value_or("");
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  local.host_name = name;
  local.variable = [](const std::string& variable) { return GetEnv(variable.c_str()); };
  return local;
}

// What `ssh -G` would print without configuration files.
std::string DefaultsFor(const SshHost& host, const SshLocal& local) {
  std::string text = "hostname " + host.name + "\n";
  text += "user " + (host.user.empty() ? local.user : host.user) + "\n";
  text += Format("port {}\n", host.port == 0 ? 22 : host.port);
  std::string folder = local.home + "/.ssh/";
  if (!host.identity_file.empty()) {
    text += "identityfile " + host.identity_file + "\n";
  } else {
    for (const char* name : {"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"})
      text += "identityfile " + folder + name + "\n";
  }
  return text + "userknownhostsfile " + folder + "known_hosts " + folder +
         "known_hosts2\nglobalknownhostsfile /etc/ssh/ssh_known_hosts\n";
}

// The configuration files that exist.
std::vector<std::string> ConfigFilesFor(const SshHost& host, const SshLocal& local) {
  std::vector<std::string> files = {local.home + "/.ssh/config", "/etc/ssh/ssh_config"};
  if (!host.config_file.empty()) files = {host.config_file};
  std::erase_if(files, [](const std::string& file) { return ::access(file.c_str(), R_OK) != 0; });
  return files;
}

std::string Bracketed(const std::string& name) {
  return name.find(':') == std::string::npos ? name : "[" + name + "]";
}

std::string AsUri(const std::string& jump) {
  return jump.starts_with("ssh://") ? jump : "ssh://" + jump;
}

}  // namespace

void KeepTail(std::string& tail, std::string_view bytes) {
  tail.append(bytes);
  if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
}

std::vector<std::string> AskConfigCommand(const SshHost& host) {
  std::vector<std::string> argv = {"ssh", "-G"};
  if (!host.config_file.empty()) argv.insert(argv.end(), {"-F", host.config_file});
  if (host.port != 0) argv.insert(argv.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) argv.insert(argv.end(), {"-l", host.user});
  if (!host.identity_file.empty()) argv.insert(argv.end(), {"-i", host.identity_file});
  argv.insert(argv.end(), {"--", host.name});
  return argv;
}

std::vector<std::string> ProxyCommand(const SshConfig& config, const std::string& config_file) {
  if (!config.proxy_command.empty()) return {"/bin/sh", "-c", "exec " + config.proxy_command};
  if (config.proxy_jump.empty()) return {};
  // Like ssh: the last jump host connects to the host, through the jumps before it.
  size_t last = config.proxy_jump.rfind(',');
  std::vector<std::string> argv = {"ssh", "-o", "BatchMode=yes"};
  if (!config_file.empty()) argv.insert(argv.end(), {"-F", config_file});
  if (last != std::string::npos) argv.insert(argv.end(), {"-J", config.proxy_jump.substr(0, last)});
  argv.insert(argv.end(), {"-W", Format("{}:{}", Bracketed(config.hostname), config.port)});
  std::string jump =
      last == std::string::npos ? config.proxy_jump : config.proxy_jump.substr(last + 1);
  argv.insert(argv.end(), {"--", AsUri(jump)});
  return argv;
}

Status SshProgram::Start(const std::vector<std::string>& argv, OnEnd on_end) {
  int ends[2] = {-1, -1}, pipe_ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return SystemError("no socket pair could be made", errno);
  UniqueFd ours(ends[0]), theirs(ends[1]);
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return SystemError("no pipe could be made", errno);
  UniqueFd read_end(pipe_ends[0]), write_end(pipe_ends[1]);
  SpawnOutcome child =
      SpawnProgram({argv, OwnEnvironment(), "/"}, {theirs.get(), theirs.get(), write_end.get()});
  if (child.pid == 0) return {Code::kInvalidArgument, child.reason};
  pid_ = child.pid;
  on_end_ = std::move(on_end);
  socket_ = std::move(ours);
  error_pump_ = std::make_unique<BytePump>(
      hub_.io(), std::move(read_end), UniqueFd(),
      BytePumpHandlers{[this](std::string_view bytes) { KeepTail(errors_, bytes); }, [] {},
                       [this] {
                         error_pump_->Close();
                         ReportIfOver();
                       }});
  hub_.WatchChild(pid_, [this, self = shared_from_this()](int status) {
    status_ = status;
    kept_ = self;
    ReportIfOver();
  });
  return Status::Ok();
}

void SshProgram::Collect() {
  output_pump_ = std::make_unique<BytePump>(
      hub_.io(), std::move(socket_), UniqueFd(),
      BytePumpHandlers{[this](std::string_view bytes) { output_.append(bytes); }, [] {},
                       [this] {
                         output_pump_->Close();
                         ReportIfOver();
                       }});
}

void SshProgram::Kill() {
  if (!running()) return;
  // Does not wait for other processes that hold its stderr.
  error_pump_->Close();
  hub_.KillChild(pid_);
}

void SshProgram::ReportIfOver() {
  bool reading = (output_pump_ && output_pump_->open()) || error_pump_->open();
  if (reading || !status_ || !on_end_) return;
  std::exchange(on_end_, nullptr)(*this, *status_);
  // This may run in a handler of one of its pumps.
  asio::post(hub_.io(), [self = std::move(kept_)] {});
}

namespace {

// Runs `ssh -G`. The callbacks held by the hub must not keep the hub alive.
void AskProgram(SshHub* hub, const SshHost& host, ConfigAnswers::OnAnswer done) {
  auto ticket = std::make_shared<HandshakeGate::Ticket>(0);
  auto answer = [hub, ticket, done = std::move(done)](Result<std::string> text) {
    hub->LeaveGate(kGateOfQuestions, *ticket);
    done(std::move(text));
  };
  auto ask = [hub, host, answer] {
    auto program = std::make_shared<SshProgram>(*hub);
    Status started =
        program->Start(AskConfigCommand(host), [answer](const SshProgram& ssh, int status) {
          if (status == 0) return answer(ssh.output());
          answer(InvalidArgument(CannotReadConfig(ssh.errors())));
        });
    if (!started.ok()) {
      hub->WarnOnce(ConfigNotRead(ConfigFilesFor(host, ThisUser()), started.message()));
      return answer(DefaultsFor(host, ThisUser()));
    }
    program->Collect();
  };
  *ticket = hub->EnterGate(kGateOfQuestions, [hub, ask] {
    // After the assignment of the ticket. The hub exists: it called us.
    asio::post(hub->io(), [ask, weak = hub->weak_from_this()] {
      if (auto alive = weak.lock()) ask();
    });
  });
}

}  // namespace

void AskSshConfig(const std::shared_ptr<SshHub>& hub, const SshHost& host, OnSshConfig done) {
  auto ask = [asked = hub.get()](const SshHost& of, ConfigAnswers::OnAnswer then) {
    AskProgram(asked, of, std::move(then));
  };
  auto read = [name = host.name, done = std::move(done)](const Result<std::string>& answer) {
    if (!answer.ok()) return done(answer.status());
    Result<SshConfig> config = ParseSshConfig(*answer, ThisUser());
    if (config.ok()) config->host = name;
    done(std::move(config));
  };
  // Posted even if the answer is known.
  asio::post(hub->io(), [weak = hub->weak_from_this(), host, ask, read = std::move(read)] {
    if (auto alive = weak.lock()) alive->config_answers().Get(host, ask, read);
  });
}

}  // namespace hvd
