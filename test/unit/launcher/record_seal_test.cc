#include "launcher/external/adopt/record_seal.h"

#include <gtest/gtest.h>

#include "launcher/process/jobs/job_id.h"

namespace hvd {
namespace {

const std::string kSecret = "a secret of 32 bytes, more or le", kOther = "another one";

TEST(RecordSeal, ATextIsOpenedWithItsSecretAndKeyAlone) {
  const std::string sealed = SealRecord(kSecret, "rank.N.1", "a note");
  EXPECT_EQ(sealed.size(), std::string("a note").size() + kSealBytes);
  EXPECT_EQ(OpenRecord(kSecret, "rank.N.1", sealed).value(), "a note");
  EXPECT_EQ(OpenRecord(kSecret, "k", SealRecord(kSecret, "k", "")).value(), "");
  EXPECT_FALSE(OpenRecord(kSecret, "rank.N.2", sealed).ok()) << "moved to another name";
  EXPECT_FALSE(OpenRecord(kOther, "rank.N.1", sealed).ok());
  EXPECT_FALSE(OpenRecord(kSecret, "rank.N.1", "a note").ok());
  EXPECT_FALSE(OpenRecord(kSecret, "rank.N.1", "").ok());
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    EXPECT_FALSE(OpenRecord(kSecret, "rank.N.1", changed).ok()) << i;
  }
}

TEST(RecordSeal, WithoutASecretTextsStayAsTheyAre) {
  EXPECT_EQ(SealRecord("", "k", "a note"), "a note");
  EXPECT_EQ(OpenRecord("", "k", "a note").value(), "a note");
  EXPECT_FALSE(OpenRecord("", "k", SealRecord(kSecret, "k", "a note")).ok())
      << "the others have one";
}

TEST(RecordSeal, TheKeyOfAWorldFollowsFromTheSecret) {
  const std::string nonce = MakeJobKey(), key = KeyOfWorld(kSecret, nonce);
  EXPECT_EQ(key, KeyOfWorld(kSecret, nonce));
  EXPECT_EQ(key.size(), 64u);
  EXPECT_NE(key, nonce);
  EXPECT_NE(key, KeyOfWorld(kOther, nonce));
  EXPECT_NE(key, KeyOfWorld(kSecret, MakeJobKey()));
  EXPECT_EQ(KeyOfWorld("", nonce), nonce);
}

}  // namespace
}  // namespace hvd
