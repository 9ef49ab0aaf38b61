#include "launcher/agent/inspection/host_identity.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

const IdentityFacts kFacts = {"boot", {"net:[1]", "pid:[2]", "ipc:[3]"}, "node1", {"10.0.0.1"}, 7};

TEST(HostIdentity, EveryFactCounts) {
  const std::string text = IdentityText(kFacts);
  EXPECT_FALSE(text.empty());
  IdentityFacts other = kFacts;
  other.boot_id = "another";
  EXPECT_NE(IdentityText(other), text) << "another machine";
  for (size_t i = 0; i < kFacts.namespaces.size(); ++i) {
    other = kFacts;
    other.namespaces[i] += "1";
    EXPECT_NE(IdentityText(other), text) << "a container: " << kFacts.namespaces[i];
  }
  other = kFacts;
  other.addresses = {"10.0.0.2"};
  EXPECT_NE(IdentityText(other), text) << "a copy of a virtual machine";
  other = kFacts;
  other.user = 8;
  EXPECT_NE(IdentityText(other), text) << "another user";
}

TEST(HostIdentity, TheOrderOfAddressesDoesNotCount) {
  IdentityFacts one = kFacts, other = kFacts;
  one.addresses = {"10.0.0.1", "10.1.0.1"};
  other.addresses = {"10.1.0.1", "10.0.0.1"};
  EXPECT_EQ(IdentityText(one), IdentityText(other));
}

TEST(HostIdentity, WithoutAFactNothingIsKnown) {
  IdentityFacts other = kFacts;
  other.boot_id = "";
  EXPECT_EQ(IdentityText(other), "");
  other = kFacts;
  other.namespaces[1] = "";
  EXPECT_EQ(IdentityText(other), "");
}

TEST(HostIdentity, IsTheSameEveryTime) {
  EXPECT_NE(HostIdentity(), "");
  EXPECT_EQ(HostIdentity(), HostIdentity());
}

}  // namespace
}  // namespace hvd
