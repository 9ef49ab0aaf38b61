// Tests of behaviour that only the channel by SSH can show, over a real sshd on loopback.
#include "launcher/channels/ssh/ssh_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "launcher/channels/ssh/any_ssh_channel.h"
#include "test/contract/launcher/sshd_rig.h"
#include "test/support/deadline.h"

// libssh2 1.10 loses a buffer of 51 bytes when a session ends in the middle of a key exchange.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:kex_method_\n"; }

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Recorder final : ChannelObserver {
  void OnNote(const std::string& text) override { notes += text + "\n"; }
  void OnStage(ChannelStage stage) override { stages.push_back(stage); }
  void OnBytes(std::string_view bytes) override { got.append(bytes); }
  void OnWritable() override {
    ++writable;
    if (on_writable) on_writable();
  }
  void OnEnd(const ChannelEnd& the_end) override {
    ++ends;
    end = the_end;
  }

  std::vector<ChannelStage> stages;
  std::string got, notes;
  int writable = 0, ends = 0;
  ChannelEnd end;
  std::function<void()> on_writable;
};

class SshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    if (!SshdRig::Available()) GTEST_SKIP() << "there is no sshd: apt-get install openssh-server";
  }
  SshdRig& Server(const SshdRig::Options& options = {}) {
    server = std::make_unique<SshdRig>(options);
    return *server;
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }
  std::unique_ptr<SshChannel> Channel(const SshConfig& config, const std::string& command,
                                      Duration stage_limit = std::chrono::seconds(20)) {
    SshRequest request{config, "", command};
    request.stage_limit = stage_limit;
    return std::make_unique<SshChannel>(hub, std::move(request));
  }
  // From start to end.
  void Play(const SshConfig& config, const std::string& command) {
    channel = Channel(config, command);
    channel->Open(seen);
    EXPECT_EQ(seen.ends, 0) << "not from inside Open";
    EXPECT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  }

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> stay{io.get_executor()};
  std::shared_ptr<SshHub> hub = std::make_shared<SshHub>(io);
  std::unique_ptr<SshdRig> server;
  Recorder seen;
  std::unique_ptr<SshChannel> channel;
};

// ---- logging in

class SshKeyTest : public SshTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(SshKeyTest, LogsInWithAKeyFile) {
  SshdRig& sshd = Server();
  Play(sshd.Config({"id_" + GetParam()}), "echo hello");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(seen.got, "hello\n");
  EXPECT_THAT(seen.stages, ::testing::ElementsAre(ChannelStage::kResolve, ChannelStage::kConnect,
                                                  ChannelStage::kKeyExchange,
                                                  ChannelStage::kHostKey, ChannelStage::kLogin,
                                                  ChannelStage::kExec, ChannelStage::kRunning));
}

// ssh-keygen writes ed25519 in OpenSSH's format only.
class SshPemTest : public SshKeyTest {};
INSTANTIATE_TEST_SUITE_P(All, SshPemTest, ::testing::Values("ecdsa", "rsa"),
                         [](const auto& p) { return p.param; });

TEST_P(SshPemTest, LogsInWithAPemFile) {
  SshdRig& sshd = Server();
  SshdRig::Run(
      {"ssh-keygen", "-q", "-p", "-m", "PEM", "-N", "", "-f", sshd.Path("id_" + GetParam())});
  ASSERT_THAT(sshd.Read("id_" + GetParam()), Not(HasSubstr("OPENSSH")));
  Play(sshd.Config({"id_" + GetParam()}), "echo hello");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(seen.got, "hello\n");
}

// id_rsa of the MPI Operator and of Kubeflow Trainer, whatever its name.
TEST_F(SshTest, LogsInWithTheKeyThatAnOperatorOfKubernetesMakes) {
  SshdRig& sshd = Server();
  sshd.MakeKey("id_operator", "ecdsa", {"-N", "", "-b", "521", "-m", "PEM"});
  ASSERT_THAT(sshd.Read("id_operator"), HasSubstr("BEGIN EC PRIVATE KEY"));
  sshd.Authorize({"id_operator"});
  Play(sshd.Config({"id_operator"}), "echo hello");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(seen.got, "hello\n");
}

TEST_P(SshKeyTest, LogsInWithTheAgent) {
  SshdRig& sshd = Server();
  std::string socket = sshd.Path("agent");
  pid_t agent = SshdRig::Spawn({"ssh-agent", "-D", "-a", socket});
  ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
  // The socket is there a little before anybody listens.
  TimePoint deadline = SteadyNow() + kDeadline;
  while (SshdRig::Run({"ssh-add", "-q", sshd.Path("id_" + GetParam())}) != 0 &&
         SteadyNow() < deadline)
    ::usleep(1000);
  ::unsetenv("SSH_AUTH_SOCK");
  SshConfig config = sshd.Config({});
  config.identities_only = false;
  config.identity_agent = socket;
  Play(config, "echo hello");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(seen.got, "hello\n");
  ::kill(agent, SIGKILL);
  ::waitpid(agent, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(All, SshKeyTest, ::testing::Values("ed25519", "ecdsa", "rsa"),
                         [](const auto& p) { return p.param; });

TEST_F(SshTest, TheSecondKeyIsTriedWhenTheFirstIsRefused) {
  SshdRig& sshd = Server();
  sshd.Authorize({"id_rsa"});
  Play(sshd.Config({"id_ed25519", "id_ecdsa", "id_rsa"}), "echo hello");
  EXPECT_EQ(seen.got, "hello\n");
}

TEST_F(SshTest, ARefusedLoginNamesTheKeysThatWereTried) {
  SshdRig& sshd = Server();
  sshd.Authorize({"id_rsa"});
  Play(sshd.Config({"id_ed25519", "id_ecdsa"}), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kLogin);
  EXPECT_THAT(seen.end.reason,
              AllOf(HasSubstr("id_ed25519"), HasSubstr("id_ecdsa"), HasSubstr("ssh-copy-id")));
  EXPECT_EQ(channel->ssh_might(), "");
}

TEST_F(SshTest, AnEncryptedKeyIsNotAskedFor) {
  SshdRig& sshd = Server();
  sshd.MakeKey("id_secret", "ed25519", {"-N", "a passphrase"});
  Play(sshd.Config({"id_secret"}), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kLogin);
  EXPECT_THAT(seen.end.reason, HasSubstr("run ssh-add " + sshd.Path("id_secret")));
}

TEST_F(SshTest, TooManyKeysAreSaidToBeTooMany) {
  SshdRig& sshd = Server({{"ed25519"}, "MaxAuthTries 1"});
  sshd.Authorize({"id_rsa"});
  Play(sshd.Config({"id_ed25519", "id_ecdsa", "id_rsa"}), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kLogin);
  EXPECT_THAT(seen.end.reason, HasSubstr("IdentitiesOnly"));
}

TEST_F(SshTest, AServerThatTakesNoKeysIsToldApart) {
  SshdRig& sshd = Server({{"ed25519"}, "PubkeyAuthentication no\nPasswordAuthentication yes"});
  Play(sshd.Config(), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kLogin);
  EXPECT_THAT(seen.end.reason, AllOf(HasSubstr("password"), HasSubstr("never asks")));
}

// ---- the host's key

TEST_F(SshTest, AnUnknownHostKeyIsRefusedWithTheCommandsThatHelp) {
  SshdRig& sshd = Server();
  sshd.Write("known_hosts", "");
  Play(sshd.Config(), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kHostKey);
  EXPECT_THAT(seen.end.reason, AllOf(HasSubstr("SHA256:"),
                                     HasSubstr("ssh-keyscan -p " + std::to_string(sshd.port())),
                                     HasSubstr("--ssh-host-keys accept-new")));
}

TEST_F(SshTest, AnUnknownHostKeyIsAcceptedAndNotedWhenTheUserSaysSo) {
  SshdRig& sshd = Server();
  sshd.Write("known_hosts", "# no line end");
  SshConfig config = sshd.Config();
  config.strict_host_keys = StrictHostKeys::kAcceptNew;
  Play(config, "echo hello");
  EXPECT_EQ(seen.got, "hello\n");
  EXPECT_EQ(SshdRig::Run({"ssh-keygen", "-q", "-F", sshd.Name(), "-f", sshd.Path("known_hosts")}),
            0);
  channel.reset();

  hub = std::make_shared<SshHub>(io);  // reads the file again
  config.strict_host_keys = StrictHostKeys::kYes;
  seen = Recorder();
  Play(config, "echo again");
  EXPECT_EQ(seen.got, "again\n");
}

TEST_F(SshTest, AChangedHostKeyIsNeverAccepted) {
  SshdRig& sshd = Server();
  sshd.Write("known_hosts", "# a comment\n" + sshd.Name() + " " + sshd.Read("id_ed25519.pub"));
  SshConfig config = sshd.Config();
  config.strict_host_keys = StrictHostKeys::kNo;
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kHostKey);
  EXPECT_THAT(seen.end.reason,
              AllOf(HasSubstr("has changed"), HasSubstr(sshd.Path("known_hosts") + ":2"),
                    HasSubstr("ssh-keygen -R '" + sshd.Name() + "' -f")));
}

// As in images for pods, which get new keys and keep their names.
TEST_F(SshTest, AHostKeyThatWasWrittenToDevNullIsForgotten) {
  SshConfig config = Server().Config();
  config.user_known_hosts_files = {"/dev/null"};
  config.strict_host_keys = StrictHostKeys::kNo;
  Play(config, "echo hello");
  EXPECT_EQ(seen.got, "hello\n");
  EXPECT_THAT(hub->known_hosts().Of(config).entries, ::testing::IsEmpty());
}

TEST_F(SshTest, ARevokedHostKeyIsRefused) {
  SshdRig& sshd = Server({{"ed25519"}, ""});
  sshd.Write("known_hosts",
             sshd.KnownLines({"ed25519"}) + "@revoked * " + sshd.Read("host_ed25519.pub"));
  Play(sshd.Config(), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kHostKey);
  EXPECT_THAT(seen.end.reason,
              AllOf(HasSubstr("revoked"), HasSubstr(sshd.Path("known_hosts") + ":2")));
}

TEST_F(SshTest, TheTypeByWhichTheHostIsKnownIsAskedFor) {
  for (const std::string type : {"ecdsa", "ed25519"}) {
    SshdRig& sshd = Server();
    sshd.Write("known_hosts", sshd.KnownLines({type}));
    hub = std::make_shared<SshHub>(io);
    seen = Recorder();
    Play(sshd.Config(), "echo " + type);
    EXPECT_EQ(seen.got, type + "\n") << seen.end.reason;
    channel.reset();
  }
}

TEST_F(SshTest, AServerWithRsaKeysOnlyIsLeftToTheSshProgram) {
  SshdRig& sshd = Server({{"rsa"}, ""});
  Play(sshd.Config(), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange);
  EXPECT_THAT(seen.end.reason, HasSubstr("no algorithm in common"));
  EXPECT_THAT(channel->ssh_might(), Not(IsEmpty()));
}

// ---- algorithms

// A server that takes nothing else than one of each, as sshd's log says.
using OneOfEach = std::tuple<const char*, const char*, const char*>;
class SshAlgorithmTest : public SshTest, public ::testing::WithParamInterface<OneOfEach> {};

TEST_P(SshAlgorithmTest, IsUsedWithAServerThatTakesNothingElse) {
  const auto& [key_exchange, cipher, mac] = GetParam();
  SshdRig& sshd = Server({{"ed25519"},
                          std::string("LogLevel DEBUG1\nKexAlgorithms ") + key_exchange +
                              "\nCiphers " + cipher + "\nMACs " + mac});
  Play(sshd.Config(), "echo hello");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(seen.got, "hello\n");
  EXPECT_THAT(sshd.Read("sshd.log"),
              AllOf(HasSubstr(std::string("kex: algorithm: ") + key_exchange),
                    HasSubstr(std::string("client->server cipher: ") + cipher + " MAC: " + mac)));
}

// All that AlgorithmsWeKnow() has, each at least once.
INSTANTIATE_TEST_SUITE_P(
    All, SshAlgorithmTest,
    ::testing::Values(OneOfEach{"curve25519-sha256", "aes128-ctr", "hmac-sha2-256"},
                      OneOfEach{"curve25519-sha256@libssh.org", "aes192-ctr", "hmac-sha2-512"},
                      OneOfEach{"ecdh-sha2-nistp256", "aes256-ctr", "hmac-sha1"},
                      OneOfEach{"ecdh-sha2-nistp384", "aes128-ctr", "hmac-sha2-512"},
                      OneOfEach{"ecdh-sha2-nistp521", "aes128-ctr", "hmac-sha2-256"},
                      OneOfEach{"diffie-hellman-group-exchange-sha256", "aes128-ctr",
                                "hmac-sha2-256"},
                      OneOfEach{"diffie-hellman-group16-sha512", "aes128-ctr", "hmac-sha2-256"},
                      OneOfEach{"diffie-hellman-group18-sha512", "aes128-ctr", "hmac-sha2-256"},
                      OneOfEach{"diffie-hellman-group14-sha256", "aes128-ctr", "hmac-sha2-256"}),
    [](const auto& p) { return "Number" + std::to_string(p.index); });

TEST_F(SshTest, AServerThatWantsWhatOpenSshHasDroppedIsLeftToTheSshProgram) {
  for (const std::string dropped :
       {"KexAlgorithms diffie-hellman-group14-sha1", "KexAlgorithms diffie-hellman-group1-sha1",
        "KexAlgorithms diffie-hellman-group-exchange-sha1", "Ciphers 3des-cbc",
        "Ciphers aes128-cbc", "MACs hmac-md5", "MACs hmac-sha1-96"}) {
    SshdRig& sshd = Server({{"ed25519"}, dropped});
    seen = Recorder();
    Play(sshd.Config(), "true");
    EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange) << dropped;
    EXPECT_THAT(seen.end.reason, HasSubstr("no algorithm in common")) << dropped;
    EXPECT_THAT(channel->ssh_might(), Not(IsEmpty())) << dropped;
    channel.reset();
  }
}

TEST_F(SshTest, TheUsersChoiceDecidesWhatIsUsed) {
  SshdRig& sshd = Server({{"ed25519", "ecdsa"}, "LogLevel DEBUG1"});
  SshConfig config = sshd.Config();
  config.key_exchange_algorithms = {"ecdh-sha2-nistp384", "curve25519-sha256"};
  config.ciphers = {"aes256-gcm@openssh.com", "aes256-ctr", "aes128-ctr"};
  config.macs = {"hmac-sha2-512", "hmac-sha2-256"};
  config.host_key_algorithms = {"ecdsa-sha2-nistp256", "ssh-ed25519"};
  Play(config, "echo hello");
  EXPECT_EQ(seen.got, "hello\n") << seen.end.reason;
  EXPECT_THAT(sshd.Read("sshd.log"),
              AllOf(HasSubstr("kex: algorithm: ecdh-sha2-nistp384"),
                    HasSubstr("kex: host key algorithm: ecdsa-sha2-nistp256"),
                    HasSubstr("client->server cipher: aes256-ctr MAC: hmac-sha2-512"),
                    HasSubstr("server->client cipher: aes256-ctr MAC: hmac-sha2-512")));
}

// ---- the way there

TEST_F(SshTest, ANameThatLeadsNowhereIsSaid) {
  SshdRig& sshd = Server();
  SshConfig config = sshd.Config();
  config.hostname = "no-such-host.invalid";
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kResolve);
  EXPECT_THAT(seen.end.reason, HasSubstr("cannot be resolved"));
  EXPECT_FALSE(seen.end.may_pass) << "nobody may ever have such a name";
  seen = Recorder();
  config.hostname = "no-such-host-yet";
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kResolve);
  EXPECT_TRUE(seen.end.may_pass);
}

TEST_F(SshTest, ANameIsTriedAtEachOfItsAddresses) {
  SshdRig& sshd = Server();  // listens at 127.0.0.1 only; localhost may be ::1 first
  SshConfig config = sshd.Config();
  config.hostname = "localhost";
  config.host_key_alias = "127.0.0.1";
  sshd.Write("known_hosts", "127.0.0.1 " + sshd.Read("host_ed25519.pub"));
  Play(config, "echo hello");
  EXPECT_EQ(seen.got, "hello\n") << seen.end.reason;
}

TEST_F(SshTest, AClosedPortIsSaid) {
  SshdRig& sshd = Server();
  SshConfig config = sshd.Config();
  config.port = SshdRig::FreePort();
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kConnect);
  EXPECT_THAT(seen.end.reason,
              HasSubstr("127.0.0.1 port " + std::to_string(config.port) + ": Connection refused"));
  EXPECT_FALSE(seen.end.may_pass);
  EXPECT_EQ(seen.end.no_answer, "the connection was refused");
}

// Something that accepts one connection, says what it is told to, and holds it.
struct Listener {
  explicit Listener(std::string text) : words(std::move(text)) {
    fd.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = SshdRig::Loopback(0);
    socklen_t length = sizeof address;
    ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
    ::listen(fd.get(), 8);
    thread = std::thread([this] {
      UniqueFd one(::accept(fd.get(), nullptr, nullptr));
      [[maybe_unused]] ssize_t n = ::write(one.get(), words.data(), words.size());
      char byte = 0;
      while (::read(one.get(), &byte, 1) > 0 && words.empty()) {
      }
    });
  }
  ~Listener() {
    ::shutdown(fd.get(), SHUT_RDWR);
    thread.join();
  }
  std::string words;
  UniqueFd fd;
  uint16_t port = 0;
  std::thread thread;
};

TEST_F(SshTest, WhatIsNoSshServerIsSaid) {
  SshdRig& sshd = Server();
  Listener web("HTTP/1.1 400 Bad Request\r\n\r\n");
  SshConfig config = sshd.Config();
  config.port = web.port;
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange);
  EXPECT_THAT(seen.end.reason, HasSubstr("is no SSH server: it says 'HTTP/1.1 400 Bad Request'"));
}

// Speaks as a server until the client has said which algorithms it offers, in its first packet,
// which is plain text (RFC 4253, 7.1), and hangs up.
class OfferListener {
 public:
  OfferListener() {
    fd_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = SshdRig::Loopback(0);
    socklen_t length = sizeof address;
    ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    ::listen(fd_.get(), 1);
    thread_ = std::thread([this] { Listen(); });
  }
  ~OfferListener() { Join(); }
  uint16_t port() const { return port_; }
  // Lists of names with commas between them: key exchange, host keys, ciphers there and back, MACs
  // there and back, compression there and back, languages there and back.
  std::vector<std::string> TakeLists() {
    Join();
    constexpr size_t kBeforeLists = 1 + 1 + 16;  // padding, kind, cookie
    constexpr int kLists = 10;
    std::string_view rest = Packet();
    if (rest.size() < kBeforeLists || rest[1] != 20) return {};
    rest.remove_prefix(kBeforeLists);
    std::vector<std::string> lists;
    for (int i = 0; i < kLists && rest.size() >= 4; ++i) {
      lists.emplace_back(rest.substr(4, NumberAt(rest)));
      rest.remove_prefix(std::min(rest.size(), 4 + lists.back().size()));
    }
    return lists;
  }

 private:
  static size_t NumberAt(std::string_view bytes) {
    size_t number = 0;
    for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
    return number;
  }
  // The first one, when it is there as a whole.
  std::string_view Packet() const {
    const size_t banner = heard_.find("\r\n");
    if (banner == std::string::npos || heard_.size() < banner + 2 + 4) return {};
    std::string_view rest = std::string_view(heard_).substr(banner + 2);
    const size_t size = NumberAt(rest);
    return rest.size() < 4 + size ? std::string_view() : rest.substr(4, size);
  }
  void Listen() {
    UniqueFd one(::accept(fd_.get(), nullptr, nullptr));
    const std::string words = "SSH-2.0-OpenSSH_9.2\r\n";
    [[maybe_unused]] ssize_t n = ::write(one.get(), words.data(), words.size());
    std::array<char, 4096> buffer;
    while (Packet().empty()) {
      ssize_t got = ::read(one.get(), buffer.data(), buffer.size());
      if (got <= 0) return;
      heard_.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  void Join() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  UniqueFd fd_;
  uint16_t port_ = 0;
  std::string heard_;
  std::thread thread_;
};

TEST_F(SshTest, WhatGoesOverTheWireIsWhatTheUserAllowsAndNothingThatOpenSshHasDropped) {
  SshdRig& sshd = Server();
  auto offered = [&](const std::function<void(SshConfig&)>& change) {
    OfferListener listener;
    SshConfig config = sshd.Config();
    config.port = listener.port();
    config.host_key_alias = "there";
    change(config);
    seen = Recorder();
    Play(config, "true");
    EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange);
    channel.reset();
    return listener.TakeLists();
  };
  const std::string kex =
      "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
      "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,"
      "diffie-hellman-group18-sha512,diffie-hellman-group14-sha256";
  const std::string host_keys =
      "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521";
  const std::string ciphers = "aes128-ctr,aes192-ctr,aes256-ctr";
  const std::string macs = "hmac-sha2-256,hmac-sha2-512,hmac-sha1";
  EXPECT_THAT(
      offered([](SshConfig&) {}),
      ::testing::ElementsAre(kex, host_keys, ciphers, ciphers, macs, macs, "none", "none", "", ""));
  EXPECT_THAT(offered([](SshConfig& config) {
                config.key_exchange_algorithms = {"diffie-hellman-group1-sha1",
                                                  "ecdh-sha2-nistp521", "curve25519-sha256"};
                config.host_key_algorithms = {"ssh-rsa", "ecdsa-sha2-nistp384"};
                config.ciphers = {"3des-cbc", "aes256-ctr", "arcfour", "aes128-ctr"};
                config.macs = {"hmac-md5", "hmac-sha2-512"};
              }),
              ::testing::ElementsAre("ecdh-sha2-nistp521,curve25519-sha256", "ecdsa-sha2-nistp384",
                                     "aes256-ctr,aes128-ctr", "aes256-ctr,aes128-ctr",
                                     "hmac-sha2-512", "hmac-sha2-512", "none", "none", "", ""));
}

TEST_F(SshTest, ASilentServerIsGivenUp) {
  SshdRig& sshd = Server();
  Listener silent("");
  SshConfig config = sshd.Config();
  config.port = silent.port;
  channel = Channel(config, "true", std::chrono::milliseconds(50));
  channel->Open(seen);
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange);
  EXPECT_THAT(seen.end.reason, HasSubstr("did not speak SSH"));
}

TEST_F(SshTest, ManyHostsAtOnceGetThroughASmallMaxStartups) {
  SshdRig& sshd = Server({{"ed25519"}, "MaxStartups 2:100:2"});
  constexpr int kHosts = 24;
  std::vector<Recorder> all(kHosts);
  std::vector<std::unique_ptr<SshChannel>> channels;
  for (Recorder& one : all) {
    channels.push_back(Channel(sshd.Config(), "echo hello"));
    channels.back()->Open(one);
  }
  auto ended = [&] {
    return std::count_if(all.begin(), all.end(), [](const Recorder& one) { return one.ends == 1; });
  };
  EXPECT_TRUE(RunUntil([&] { return ended() == kHosts; }));
  for (const Recorder& one : all) EXPECT_EQ(one.got, "hello\n") << one.end.reason;
}

TEST_F(SshTest, AProxyCommandIsTheWay) {
  SshdRig& sshd = Server();
  SshConfig config = sshd.Config();
  config.proxy_command = "bash -c 'echo $$ > " + sshd.Path("pid") +
                         "; exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(sshd.port()) +
                         "; cat <&3 & exec cat >&3'";
  config.hostname = "behind.invalid";
  config.host_key_alias = "behind";
  sshd.Write("known_hosts", "behind " + sshd.Read("host_ed25519.pub"));
  Play(config, "echo hello");
  EXPECT_EQ(seen.got, "hello\n") << seen.end.reason;
  EXPECT_EQ(::kill(std::stoi(sshd.Read("pid")), 0), -1) << "the proxy is left";
}

TEST_F(SshTest, AProxyThatFailsSaysWhy) {
  SshdRig& sshd = Server();
  SshConfig config = sshd.Config();
  config.proxy_command = "echo no way there >&2; exit 3";
  Play(config, "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kKeyExchange);
  EXPECT_THAT(seen.end.reason, HasSubstr("no way there"));
}

TEST_F(SshTest, AJumpHostIsTheWay) {
  SshdRig jump, target;
  std::string user = ::getpwuid(::getuid())->pw_name;
  jump.Write("ssh_config", "Host 127.0.0.1\n IdentityFile " + jump.Path("id_ed25519") +
                               "\n IdentitiesOnly yes\n UserKnownHostsFile " +
                               jump.Path("known_hosts") + "\n StrictHostKeyChecking yes\n");
  SshRequest request{target.Config(), jump.Path("ssh_config"), "echo hello"};
  request.config.proxy_jump = user + "@127.0.0.1:" + std::to_string(jump.port());
  channel = std::make_unique<SshChannel>(hub, std::move(request));
  channel->Open(seen);
  EXPECT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.got, "hello\n") << seen.end.reason;
}

// ---- the command

TEST_F(SshTest, AnExitCodeIsAnEndWithTheLastWords) {
  SshdRig& sshd = Server();
  Play(sshd.Config(), "echo out; echo it is broken >&2; exit 3");
  EXPECT_EQ(seen.end.stage, ChannelStage::kRunning);
  EXPECT_EQ(seen.end.reason, "the agent ended with exit code 3; its last words: it is broken");
  EXPECT_EQ(seen.got, "out\n");
}

TEST_F(SshTest, ASignalIsNotTakenForSuccess) {
  SshdRig& sshd = Server();
  Play(sshd.Config(), "exec sh -c 'kill -KILL $$'");
  EXPECT_EQ(seen.end.stage, ChannelStage::kRunning);
  EXPECT_THAT(seen.end.reason, HasSubstr("signal SIGKILL"));
}

TEST_F(SshTest, FiftyMegabytesEachWayArriveWhole) {
  SshdRig& sshd = Server({{"ed25519"}, "RekeyLimit 16M"});
  constexpr size_t kBytes = 50'000'000;
  std::string sent(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<char>(i * 2654435761U >> 24);
  channel = Channel(sshd.Config(), "cat");
  size_t at = 0;
  auto push = [&] {
    while (at < kBytes) {
      size_t count = channel->Write(std::string_view(sent).substr(at, 1 << 20));
      at += count;
      if (count < std::min<size_t>(kBytes - at + count, 1 << 20)) return;
    }
  };
  seen.on_writable = push;
  channel->Open(seen);
  push();
  EXPECT_TRUE(RunUntil([&] { return seen.got.size() >= kBytes || seen.ends > 0; }))
      << seen.got.size() << " of " << at << " bytes came back";
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_TRUE(seen.got == sent);
  EXPECT_GT(seen.writable, 0) << "it took everything at once";
  channel->Close();
  EXPECT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.stage, ChannelStage::kClosed);
  EXPECT_EQ(seen.end.reason, "");
}

TEST_F(SshTest, AConnectionThatIsCutIsAnEnd) {
  SshdRig& sshd = Server();
  channel = Channel(sshd.Config(), "echo $PPID; exec sleep 1000");
  channel->Open(seen);
  ASSERT_TRUE(RunUntil([&] { return seen.got.ends_with("\n"); }));
  ::kill(std::stoi(seen.got), SIGKILL);  // the sshd of this session
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.stage, ChannelStage::kRunning);
  EXPECT_THAT(seen.end.reason, HasSubstr("the ssh connection to 127.0.0.1 port"));
}

TEST_F(SshTest, ClosingEndsTheInputAndWaitsForTheEnd) {
  SshdRig& sshd = Server();
  channel = Channel(sshd.Config(), "cat >/dev/null; echo done > " + sshd.Path("done"));
  channel->Open(seen);
  ASSERT_TRUE(RunUntil(
      [&] { return !seen.stages.empty() && seen.stages.back() == ChannelStage::kRunning; }));
  channel->Close();
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.stage, ChannelStage::kClosed);
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(sshd.Read("done"), "done\n");
}

TEST_F(SshTest, ClosingOrKillingAtAnyStageEndsOnce) {
  SshdRig& sshd = Server();
  for (int stage = 0; stage <= static_cast<int>(ChannelStage::kRunning); ++stage) {
    for (bool kill : {false, true}) {
      Recorder one;
      std::unique_ptr<SshChannel> each = Channel(sshd.Config(), "cat");
      each->Open(one);
      RunUntil([&] { return !one.stages.empty() && static_cast<int>(one.stages.back()) >= stage; });
      kill ? each->Kill() : each->Close();
      each->Close();
      EXPECT_TRUE(RunUntil([&] { return one.ends > 0; }));
      io.run_for(std::chrono::milliseconds(5));
      EXPECT_EQ(one.ends, 1);
      EXPECT_EQ(one.end.stage == ChannelStage::kClosed, !kill || stage == 8) << stage;
    }
  }
}

TEST_F(SshTest, AChannelMayGoAtAnyStage) {
  SshdRig& sshd = Server();
  for (int stage = 0; stage <= static_cast<int>(ChannelStage::kRunning); ++stage) {
    Recorder one;
    std::unique_ptr<SshChannel> each = Channel(sshd.Config(), "cat");
    each->Open(one);
    RunUntil([&] { return !one.stages.empty() && static_cast<int>(one.stages.back()) >= stage; });
    each.reset();
    io.run_for(std::chrono::milliseconds(5));
    EXPECT_EQ(one.ends, 0);
  }
}

// ---- whichever way

// Stands for the channel of the ssh program.
class NamedChannel final : public HostChannel {
 public:
  NamedChannel(asio::io_context& io, std::string name) : io_(io), name_(std::move(name)) {}
  void Open(ChannelObserver& observer) override {
    asio::post(io_, [this, &observer] { observer.OnEnd({ChannelStage::kExec, name_}); });
  }
  size_t Write(std::string_view bytes) override { return bytes.size(); }
  void Close() override {}
  void Kill() override {}

 private:
  asio::io_context& io_;
  std::string name_;
};

class AnySshTest : public SshTest {
 protected:
  void PlayAny(const SshHost& host, const std::string& command) {
    any = std::make_unique<AnySshChannel>(hub, host, command, UnknownHostKeys::kAsConfigured,
                                          [this](const SshHost& which, const std::string& why) {
                                            return std::make_unique<NamedChannel>(
                                                io, "ssh " + which.name + ": " + why);
                                          });
    any->Open(seen);
    written = any->Write("some words\n");
    any_done = RunUntil([&] { return seen.ends > 0; });
    EXPECT_TRUE(any_done);
  }
  SshHost Host(SshdRig& sshd, const std::string& more = "") {
    sshd.Write("ssh_config", more + "Host there\n HostName 127.0.0.1\n Port " +
                                 std::to_string(sshd.port()) + "\n IdentityFile " +
                                 sshd.Path("id_rsa") +
                                 "\n IdentityAgent none\n UserKnownHostsFile " +
                                 sshd.Path("known_hosts") + "\n GlobalKnownHostsFile none\n");
    SshHost host;
    host.name = "there";
    host.config_file = sshd.Path("ssh_config");
    return host;
  }
  std::unique_ptr<AnySshChannel> any;
  size_t written = 0;
  bool any_done = false;
};

TEST_F(AnySshTest, TheUsersConfigurationLeadsToTheHost) {
  SshdRig& sshd = Server();
  std::string got;
  seen.on_writable = [&] { any->Write("some words\n"); };
  PlayAny(Host(sshd), "read words; echo $words");
  EXPECT_EQ(seen.end.reason, "");
  EXPECT_EQ(written, 0u);
  EXPECT_EQ(seen.got, "some words\n");
}

TEST_F(AnySshTest, WhatOnlySshCanIsLeftToIt) {
  SshdRig& sshd = Server();
  PlayAny(Host(sshd, "PubkeyAuthentication no\n"), "true");
  EXPECT_EQ(seen.end.reason, "ssh there: PubkeyAuthentication is off");
}

TEST_F(AnySshTest, AlgorithmsOfTheUsersConfigurationAreKept) {
  SshdRig& sshd = Server({{"ed25519"}, "LogLevel DEBUG1"});
  PlayAny(
      Host(sshd,
           "Ciphers ^aes256-ctr\nMACs -hmac-sha2-256,*etm*\nKexAlgorithms ecdh-sha2-nistp384\n"),
      "echo hello");
  EXPECT_EQ(seen.got, "hello\n") << seen.end.reason;
  EXPECT_THAT(sshd.Read("sshd.log"),
              AllOf(HasSubstr("kex: algorithm: ecdh-sha2-nistp384"),
                    HasSubstr("client->server cipher: aes256-ctr MAC: hmac-sha2-512")));
  EXPECT_EQ(seen.notes, "");
}

TEST_F(AnySshTest, WhereOnlySshKnowsTheUsersAlgorithmsItIsLeftToSsh) {
  SshdRig& sshd = Server();
  for (const std::string line :
       {"Ciphers chacha20-poly1305@openssh.com", "Ciphers aes256-cbc", "MACs umac-64@openssh.com",
        "KexAlgorithms diffie-hellman-group14-sha1", "HostKeyAlgorithms rsa-sha2-512"}) {
    hub = std::make_shared<SshHub>(io);
    seen = Recorder();
    PlayAny(Host(sshd, line + "\n"), "true");
    const std::string why = line.substr(0, line.find(' ')) + " allows none";
    EXPECT_THAT(seen.end.reason, HasSubstr("ssh there: " + why)) << line;
    EXPECT_THAT(seen.notes, HasSubstr("the ssh program goes there, because " + why)) << line;
    any.reset();
  }
}

TEST_F(AnySshTest, WhatLibssh2TriesInVainIsLeftToSsh) {
  SshdRig& sshd = Server({{"rsa"}, ""});
  SshHost host = Host(sshd);
  sshd.Write("known_hosts", "");
  PlayAny(host, "true");
  EXPECT_THAT(seen.end.reason, HasSubstr("ssh there: the server and hvdrun's own client"));
}

TEST_F(AnySshTest, ABadConfigurationIsSaid) {
  SshdRig& sshd = Server();
  PlayAny(Host(sshd, "NoSuchOption yes\n"), "true");
  EXPECT_EQ(seen.end.stage, ChannelStage::kResolve);
  EXPECT_THAT(seen.end.reason, HasSubstr("line 1"));
}

}  // namespace
}  // namespace hvd
