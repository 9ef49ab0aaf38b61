#include "launcher/channels/ssh/ssh_algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SshAlgorithms, WithoutAConfigurationAllThatWeKnowIsOffered) {
  EXPECT_EQ(AlgorithmsToOffer(SshConfig(), {}), AlgorithmsWeKnow());
  EXPECT_EQ(NothingLeft(AlgorithmsWeKnow()), "");
}

TEST(SshAlgorithms, NothingIsKnownThatOpenSshHasDropped) {
  const SshAlgorithms& known = AlgorithmsWeKnow();
  EXPECT_THAT(known.ciphers, Each(Not(HasSubstr("cbc"))));
  EXPECT_THAT(known.ciphers, Each(Not(HasSubstr("arcfour"))));
  EXPECT_THAT(known.macs, Each(Not(HasSubstr("md5"))));
  EXPECT_THAT(known.macs, Each(Not(HasSubstr("96"))));
  EXPECT_THAT(known.key_exchange, Each(Not(HasSubstr("sha1"))));
  EXPECT_THAT(known.host_keys, Each(Not(HasSubstr("rsa"))));
}

TEST(SshAlgorithms, TheUsersOrderIsKeptAndNothingIsAdded) {
  SshConfig config;
  config.ciphers = {"aes256-ctr", "aes256-gcm@openssh.com", "aes128-ctr", "3des-cbc", "aes256-ctr"};
  config.macs = {"hmac-sha2-512", "umac-128@openssh.com"};
  config.key_exchange_algorithms = {"diffie-hellman-group14-sha1", "ecdh-sha2-nistp521",
                                    "curve25519-sha256"};
  const SshAlgorithms offer = AlgorithmsToOffer(config, {});
  EXPECT_THAT(offer.ciphers, ElementsAre("aes256-ctr", "aes128-ctr"));
  EXPECT_THAT(offer.macs, ElementsAre("hmac-sha2-512"));
  EXPECT_THAT(offer.key_exchange, ElementsAre("ecdh-sha2-nistp521", "curve25519-sha256"));
}

TEST(SshAlgorithms, WhatAUserWantsThatIsDroppedIsNotOffered) {
  SshConfig config;
  config.ciphers = {"3des-cbc", "arcfour"};
  EXPECT_THAT(AlgorithmsToOffer(config, {}).ciphers, IsEmpty());
  EXPECT_EQ(NothingLeft(AlgorithmsToOffer(config, {})), "Ciphers");
}

TEST(SshAlgorithms, TypesByWhichTheHostIsKnownComeFirst) {
  SshConfig config;
  EXPECT_THAT(AlgorithmsToOffer(config, {"ssh-rsa", "ecdsa-sha2-nistp256"}).host_keys,
              ElementsAre("ecdsa-sha2-nistp256", "ssh-ed25519", "ecdsa-sha2-nistp384",
                          "ecdsa-sha2-nistp521"));
  config.host_key_algorithms = {"rsa-sha2-512", "ecdsa-sha2-nistp521", "ssh-ed25519"};
  EXPECT_THAT(AlgorithmsToOffer(config, {"ecdsa-sha2-nistp256"}).host_keys,
              ElementsAre("ecdsa-sha2-nistp521", "ssh-ed25519"));
  EXPECT_THAT(AlgorithmsToOffer(config, {"ssh-ed25519"}).host_keys,
              ElementsAre("ssh-ed25519", "ecdsa-sha2-nistp521"));
}

}  // namespace
}  // namespace hvd
