#include "discovery/ssh_config.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Strings = std::vector<std::string>;

SshLocal Local() {
  return {.home = "/home/bob",
          .user = "bob",
          .host_name = "here.example",
          .user_id = 1000,
          .variable = [](const std::string& name) -> std::optional<std::string> {
            if (name == "KEYS") return "/keys";
            return std::nullopt;
          }};
}

SshConfig Read(const std::string& more) {
  auto config =
      ParseSshConfig("host alias\nuser root\nhostname node7.example\nport 2222\n" + more, Local());
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : SshConfig();
}

// As OpenSSH 9.2 prints it, without what is not read.
constexpr const char* kWhole = R"(host Node7
user root
hostname node7
port 22
addressfamily inet6
batchmode no
canonicalizefallbacklocal yes
gssapiauthentication yes
hashknownhosts yes
hostbasedauthentication no
identitiesonly yes
proxyusefdpass no
pubkeyauthentication true
stricthostkeychecking accept-new
updatehostkeys true
connectionattempts 3
serveralivecountmax 5
serveraliveinterval 15
bindaddress 192.0.2.1
ciphers aes128-ctr,aes192-ctr
controlpath /home/bob/.ssh/cm-78d1
hostkeyalias al
hostkeyalgorithms ssh-ed25519,rsa-sha2-512
pkcs11provider /x.so
preferredauthentications publickey,gssapi-with-mic
pubkeyacceptedalgorithms ssh-ed25519,rsa-sha2-512
revokedhostkeys ~/revoked
knownhostscommand /bin/known %H
identityfile ~/my keys/id_%h
identityfile %d/.ssh/id_%r
certificatefile ~/c-cert.pub
globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2
userknownhostsfile /home/bob/k h/a /home/bob/b
setenv A=b c
setenv D=e
connecttimeout 300
canonicalizePermittedcnames none
proxyjump j1,u@j2:2200
remotecommand echo hi
)";

TEST(SshConfig, ReadsWhatOpenSshPrints) {
  auto config = ParseSshConfig(kWhole, Local());
  ASSERT_TRUE(config.ok());
  SshConfig expected{
      .host = "Node7",
      .hostname = "node7",
      .port = 22,
      .user = "root",
      .address_family = SshAddressFamily::kInet6,
      .bind_address = "192.0.2.1",
      .connect_timeout_s = 300,
      .connection_attempts = 3,
      .server_alive_interval_s = 15,
      .server_alive_count_max = 5,
      .proxy_jump = "j1,u@j2:2200",
      .control_path = "/home/bob/.ssh/cm-78d1",
      .strict_host_keys = StrictHostKeys::kAcceptNew,
      .host_key_alias = "al",
      .host_key_algorithms = {"ssh-ed25519", "rsa-sha2-512"},
      .user_known_hosts_files = {"/home/bob/k h/a", "/home/bob/b"},
      .global_known_hosts_files = {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
      .known_hosts_command = "/bin/known %H",
      .revoked_host_keys = "/home/bob/revoked",
      .hash_known_hosts = true,
      .ciphers = {"aes128-ctr", "aes192-ctr"},
      .gssapi_authentication = true,
      .preferred_authentications = {"publickey", "gssapi-with-mic"},
      .pubkey_accepted_algorithms = {"ssh-ed25519", "rsa-sha2-512"},
      .identities_only = true,
      .identity_files = {"/home/bob/my keys/id_node7", "/home/bob/.ssh/id_root"},
      .certificate_files = {"/home/bob/c-cert.pub"},
      .pkcs11_provider = "/x.so",
      .remote_command = "echo hi",
      .set_env = {"A=b c", "D=e"},
  };
  EXPECT_EQ(config->ignored, Strings());
  EXPECT_EQ(*config, expected);
}

TEST(SshConfig, HasDefaults) {
  auto config = ParseSshConfig("hostname a\n", Local());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config, (SshConfig{.host = "a", .hostname = "a", .user = "bob"}));
}

TEST(SshConfig, NoneIsNothing) {
  SshConfig config = Read(
      "proxyjump none\nproxycommand none\nidentityfile none\nidentityagent none\n"
      "userknownhostsfile none\nconnecttimeout none\ncertificatefile none\nhostkeyalias none\n"
      "globalknownhostsfile none\ncontrolpath none\nrevokedhostkeys none\n");
  SshConfig expected{.host = "alias",
                     .hostname = "node7.example",
                     .port = 2222,
                     .user = "root",
                     .identity_agent = ""};
  EXPECT_EQ(config, expected);
  auto named = ParseSshConfig("host none\nhostname none\nuser none\n", Local());
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->hostname, "none") << "a host may be called so";
}

TEST(SshConfig, TheFirstValueWins) {
  EXPECT_EQ(Read("port 1\nuser eve\nhostname evil\n"), Read(""));
  EXPECT_TRUE(Read("identitiesonly yes\nidentitiesonly no\n").identities_only);
  EXPECT_EQ(Read("IdentityFile /a\r\nidentityfile /b\r\n").identity_files, (Strings{"/a", "/b"}));
}

TEST(SshConfig, ReadsEveryWayToCheckHostKeys) {
  using enum StrictHostKeys;
  for (auto [text, strict] :
       std::initializer_list<std::pair<const char*, StrictHostKeys>>{{"true", kYes},
                                                                     {"yes", kYes},
                                                                     {"ask", kAsk},
                                                                     {"accept-new", kAcceptNew},
                                                                     {"false", kNo},
                                                                     {"no", kNo},
                                                                     {"off", kNo}}) {
    EXPECT_EQ(Read("stricthostkeychecking " + std::string(text)).strict_host_keys, strict) << text;
  }
}

TEST(SshConfig, ReadsEveryKindOfAgent) {
  EXPECT_EQ(Read("").identity_agent, std::nullopt);
  EXPECT_EQ(Read("identityagent SSH_AUTH_SOCK").identity_agent, std::nullopt);
  for (auto [text, agent] : std::initializer_list<std::pair<const char*, const char*>>{
           {"none", ""},
           {"$KEYS", "/keys"},
           {"$NOTSET", ""},
           {"${KEYS}/agent", "/keys/agent"},
           {"~/agent-%r", "/home/bob/agent-root"},
           {"/run/agent", "/run/agent"}}) {
    EXPECT_EQ(Read("identityagent " + std::string(text)).identity_agent, agent) << text;
  }
}

TEST(SshConfig, ExpandsTokens) {
  for (auto [text, path] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/%%", "/%"},
           {"/%h/%n/%k", "/node7.example/alias/alias"},
           {"/k-%r/%u/%i/%p", "/k-root/bob/1000/2222"},
           {"/%l/%L", "/here.example/here"},
           {"%d/x", "/home/bob/x"},
           {"~/x", "/home/bob/x"},
           {"~", "/home/bob"},
           {"~bob/x", "/home/bob/x"},
           {"${KEYS}/x", "/keys/x"},
           {"/a%", "/a%"},
           {"/a$KEYS", "/a$KEYS"},
           {"relative", "relative"}}) {
    EXPECT_EQ(Read("identityfile " + std::string(text)).identity_files, Strings{path}) << text;
  }
  EXPECT_EQ(Read("hostkeyalias al\nidentityfile /%k").identity_files, Strings{"/al"});
}

TEST(SshConfig, SaysWhatItLeavesOut) {
  struct Row {
    const char* text;
    const char* said;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"identityfile /a%C", "'/a%C' has the token '%C', which is not known here"},
           {"identityfile ~eve/a",
            "'~eve/a' begins with the home of 'eve', which is not looked up; write its path"},
           {"identityfile ${NO}/a", "'${NO}/a' names the variable 'NO', which is not set"},
           {"identityfile ${NO", "'${NO' names the variable 'NO', which is not set"},
           {"stricthostkeychecking maybe",
            "stricthostkeychecking is 'maybe', which is not understood"},
           {"identitiesonly perhaps", "identitiesonly is 'perhaps', which is not understood"},
       }) {
    SshConfig config = Read(row.text);
    EXPECT_EQ(config.ignored, Strings{row.said});
    EXPECT_EQ(config.identity_files, Strings());
    EXPECT_EQ(config.strict_host_keys, StrictHostKeys::kAsk);
  }
  EXPECT_EQ(Read("revokedhostkeys /a%C").revoked_host_keys, "/a%C") << "never forgotten";
}

TEST(SshConfig, ReadsProxies) {
  EXPECT_EQ(Read("proxycommand nc -X 5 %h %p # %r@%n ${X} ~ 100%%").proxy_command,
            "nc -X 5 node7.example 2222 # root@alias ${X} ~ 100%");
  auto config = ParseSshConfig("hostname a\nproxycommand x %Z", Local());
  ASSERT_FALSE(config.ok()) << "must not become a direct connection";
  EXPECT_EQ(config.status().message(),
            "ProxyCommand for a: 'x %Z' has the token '%Z', which is not known here");
}

TEST(SshConfig, SplitsListsOfPaths) {
  for (auto [text, paths] : std::initializer_list<std::pair<const char*, Strings>>{
           {"/a /b", {"/a", "/b"}},
           {"/a b /c", {"/a b", "/c"}},
           {"~/a /b c d", {"/home/bob/a", "/b c d"}},
           {"none", {}},
           {"relative", {"relative"}}}) {
    EXPECT_EQ(Read("userknownhostsfile " + std::string(text)).user_known_hosts_files, paths)
        << text;
  }
}

TEST(SshConfig, RefusesWhatIsNoSuchOutput) {
  for (const char* text :
       {"", "hostname\n", "user bob\n", "hostname a\nport x\n", "hostname a\nport 0\n",
        "hostname a\nport 65536\n", "hostname a\nport -1\n"}) {
    EXPECT_FALSE(ParseSshConfig(text, Local()).ok()) << text;
  }
}

TEST(SshConfig, KnowsTheNameInKnownHosts) {
  EXPECT_EQ(NameInKnownHosts(Read("")), (KnownHostsName{"node7.example", 2222}));
  EXPECT_EQ(NameInKnownHosts(Read("hostkeyalias al")), (KnownHostsName{"al", 0}));
}

}  // namespace
}  // namespace hvd
