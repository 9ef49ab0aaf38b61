#include "launcher/channels/ssh/ssh_method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Row {
  std::string name;
  std::function<void(SshConfig&, SshFacts&)> change;
  std::string why;  // "": libssh2
};

class SshMethodTable : public ::testing::TestWithParam<Row> {};

TEST_P(SshMethodTable, Chooses) {
  SshConfig config;
  SshFacts facts;
  GetParam().change(config, facts);
  SshChoice choice = ChooseSshMethod(config, facts);
  EXPECT_EQ(choice.method == SshMethod::kLibssh2, GetParam().why.empty());
  EXPECT_THAT(choice.why, HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    All, SshMethodTable,
    ::testing::Values(
        Row{"plain", [](SshConfig&, SshFacts&) {}, ""},
        Row{"gssapi_beside_keys", [](SshConfig& c, SshFacts&) { c.gssapi_authentication = true; },
            ""},
        Row{"jump", [](SshConfig& c, SshFacts&) { c.proxy_jump = "j"; }, ""},
        Row{"fdpass", [](SshConfig& c, SshFacts&) { c.proxy_use_fdpass = true; }, "ProxyUseFdpass"},
        Row{"bind", [](SshConfig& c, SshFacts&) { c.bind_address = "10.0.0.1"; }, "BindAddress"},
        Row{"interface", [](SshConfig& c, SshFacts&) { c.bind_interface = "eth1"; },
            "BindInterface"},
        Row{"token", [](SshConfig& c, SshFacts&) { c.pkcs11_provider = "p.so"; }, "PKCS11"},
        Row{"known_hosts_command", [](SshConfig& c, SshFacts&) { c.known_hosts_command = "k"; },
            "KnownHostsCommand"},
        Row{"revoked", [](SshConfig&, SshFacts& f) { f.revoked_keys_file = true; },
            "RevokedHostKeys"},
        Row{"certificate", [](SshConfig&, SshFacts& f) { f.certificate = true; }, "certificate"},
        Row{"fido", [](SshConfig&, SshFacts& f) { f.only_security_keys = true; }, "security key"},
        Row{"no_keys", [](SshConfig& c, SshFacts&) { c.pubkey_authentication = false; },
            "PubkeyAuthentication"},
        Row{"preferred_with_keys",
            [](SshConfig& c, SshFacts&) {
              c.preferred_authentications = {"gssapi-with-mic", "publickey"};
            },
            ""},
        Row{"gssapi_only",
            [](SshConfig& c, SshFacts&) { c.preferred_authentications = {"gssapi-with-mic"}; },
            "PreferredAuthentications"},
        Row{"authority", [](SshConfig&, SshFacts& f) { f.authority_only = true; }, "authority"},
        Row{"rsa_host", [](SshConfig&, SshFacts& f) { f.known_types = {"ssh-rsa"}; }, "ssh-rsa"},
        Row{"rsa_and_more",
            [](SshConfig&, SshFacts& f) {
              f.known_types = {"ssh-rsa", "ssh-ed25519"};
            },
            ""},
        Row{"algorithms", [](SshConfig& c, SshFacts&) { c.host_key_algorithms = {"rsa-sha2-512"}; },
            "HostKeyAlgorithms"},
        Row{"ciphers",
            [](SshConfig& c, SshFacts&) {
              c.ciphers = {"chacha20-poly1305@openssh.com", "3des-cbc"};
            },
            "Ciphers"},
        Row{"macs",
            [](SshConfig& c, SshFacts&) {
              c.macs = {"umac-64@openssh.com", "hmac-md5"};
            },
            "MACs"},
        Row{"key_exchange",
            [](SshConfig& c, SshFacts&) {
              c.key_exchange_algorithms = {"diffie-hellman-group1-sha1"};
            },
            "KexAlgorithms"},
        Row{"one_of_each",
            [](SshConfig& c, SshFacts&) {
              c.ciphers = {"aes128-gcm@openssh.com", "aes256-ctr"};
              c.macs = {"hmac-sha2-512"};
              c.key_exchange_algorithms = {"sntrup761x25519-sha512@openssh.com",
                                           "ecdh-sha2-nistp384"};
            },
            ""}),
    [](const auto& p) { return p.param.name; });

TEST(UnknownHostKeys, TheSettingGoesBeforeTheConfiguration) {
  using S = StrictHostKeys;
  for (S configured : {S::kYes, S::kAsk, S::kAcceptNew, S::kNo}) {
    EXPECT_TRUE(AcceptsUnknown(UnknownHostKeys::kAccept, configured));
    EXPECT_FALSE(AcceptsUnknown(UnknownHostKeys::kRefuse, configured));
    EXPECT_EQ(AcceptsUnknown(UnknownHostKeys::kAsConfigured, configured),
              configured == S::kAcceptNew || configured == S::kNo);
  }
}

TEST(WhatSshMightDo, OnlyWhatTheServerTakesToo) {
  SshConfig config;
  EXPECT_THAT(WhatSshMightDo(config, {{"publickey", "gssapi-with-mic"}, false}), IsEmpty());
  config.gssapi_authentication = true;
  EXPECT_THAT(WhatSshMightDo(config, {{"publickey"}, false}), IsEmpty());
  EXPECT_THAT(WhatSshMightDo(config, {{"gssapi-with-mic"}, false}), HasSubstr("Kerberos"));
  EXPECT_THAT(WhatSshMightDo(SshConfig(), {{"publickey"}, true}), HasSubstr("security key"));
}

}  // namespace
}  // namespace hvd
