// SshdRig: a real sshd on loopback, on a port of its own, with keys, files and settings in a
// temporary folder. Nothing of the user's ~/.ssh is read or written.
#ifndef HVD_TEST_CONTRACT_LAUNCHER_SSHD_RIG_H_
#define HVD_TEST_CONTRACT_LAUNCHER_SSHD_RIG_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "discovery/ssh_config.h"
#include "runtime/base/unique_fd.h"
#include "test/support/deadline.h"

namespace hvd {

class SshdRig {
 public:
  struct Options {
    std::vector<std::string> host_keys = {"ed25519", "ecdsa"};
    std::string settings;  // more lines of sshd_config; the first of a kind wins
  };

  static bool Available() { return std::filesystem::exists(Program()); }

  SshdRig() : SshdRig(Options()) {}
  explicit SshdRig(const Options& options) {
    std::string pattern = std::filesystem::temp_directory_path() / "hvd_sshd_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    CopyKeys();
    Authorize({"id_ed25519", "id_ecdsa", "id_rsa"});
    if (::getuid() == 0) ::mkdir("/run/sshd", 0755);
    port_ = FreePort();
    std::ofstream config(Path("sshd_config"));
    config << options.settings << "\nPort " << port_ << "\nListenAddress 127.0.0.1\n";
    for (const std::string& type : options.host_keys)
      config << "HostKey " << Path("host_" + type) << "\n";
    config << "AuthorizedKeysFile " << Path("authorized_keys") << "\nStrictModes no\nUsePAM no\n"
           << "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n"
           << "PidFile none\nPermitRootLogin yes\nMaxStartups 1000\nSetEnv SHLVL=1\n";
    config.close();
    Write("known_hosts", KnownLines(options.host_keys));
    Start();
  }
  ~SshdRig() {
    Stop();
    // A session that has just been started may write its log after the folder was emptied.
    std::error_code busy;
    for (int attempt = 0; attempt < 3; ++attempt) {
      std::filesystem::remove_all(folder_, busy);
      if (!busy) break;
    }
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  uint16_t port() const { return port_; }
  std::string Name() const { return "[127.0.0.1]:" + std::to_string(port_); }

  // The configuration that `ssh -G` would give: this host, the given key, this rig's known_hosts
  // and no agent.
  SshConfig Config(const std::vector<std::string>& keys = {"id_ed25519"}) const {
    SshConfig config;
    config.host = config.hostname = "127.0.0.1";
    config.port = port_;
    config.user = ::getpwuid(::getuid())->pw_name;
    config.identities_only = true;
    config.identity_agent = "";
    for (const std::string& key : keys) config.identity_files.push_back(Path(key));
    config.user_known_hosts_files = {Path("known_hosts")};
    return config;
  }

  void MakeKey(const std::string& name, const std::string& type,
               const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv = {"ssh-keygen", "-q", "-t", type, "-f", Path(name)};
    if (more.empty()) argv.insert(argv.end(), {"-N", ""});
    argv.insert(argv.end(), more.begin(), more.end());
    Run(argv);
  }
  void Authorize(const std::vector<std::string>& keys) {
    std::string text;
    for (const std::string& key : keys) text += Read(key + ".pub");
    Write("authorized_keys", text);
  }
  // Lines of known_hosts for the host's keys of these types.
  std::string KnownLines(const std::vector<std::string>& types) const {
    std::string text;
    for (const std::string& type : types) text += Name() + " " + Read("host_" + type + ".pub");
    return text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }
  // Ends the server; with `sessions`, also the processes of those who are logged in.
  void Stop() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Runs a program to its end; its exit code.
  static int Run(const std::vector<std::string>& argv) {
    int status = -1;
    pid_t pid = Spawn(argv);
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static pid_t Spawn(const std::vector<std::string>& argv) {
    std::vector<char*> pointers;
    for (const std::string& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
    pointers.push_back(nullptr);
    pid_t pid = 0;
    ::posix_spawnp(&pid, pointers[0], nullptr, nullptr, pointers.data(), environ);
    return pid;
  }
  static uint16_t FreePort() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof address;
    ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
  }
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

 private:
  // Made once: a key for RSA takes its time.
  void CopyKeys() const {
    static const std::string* const made = [] {
      std::string pattern = std::filesystem::temp_directory_path() / "hvd_keys_XXXXXX";
      auto* folder = new std::string(::mkdtemp(pattern.data()));
      for (const std::string type : {"ed25519", "ecdsa", "rsa"}) {
        for (const std::string whose : {"/host_", "/id_"})
          Run({"ssh-keygen", "-q", "-t", type, "-N", "", "-f", *folder + whose + type});
      }
      std::atexit([] { std::filesystem::remove_all(*made); });
      return folder;
    }();
    std::filesystem::copy(*made, folder_);
  }
  static std::string Program() { return "/usr/sbin/sshd"; }

  void Start() {
    pid_ = Spawn({Program(), "-D", "-f", Path("sshd_config"), "-E", Path("sshd.log")});
    auto deadline = std::chrono::steady_clock::now() + Scaled(std::chrono::seconds(30));
    while (!Answers() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  bool Answers() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(port_);
    return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  std::string folder_;
  uint16_t port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace hvd

#endif  // HVD_TEST_CONTRACT_LAUNCHER_SSHD_RIG_H_
