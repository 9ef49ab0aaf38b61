#include "launcher/note_seal.h"

#include <gtest/gtest.h>

#include "launcher/job_id.h"

namespace hvd {
namespace {

const std::string kSecret = "a secret of 32 bytes, more or le", kOther = "another one";

TEST(NoteSeal, ATextIsOpenedWithItsSecretAndKeyAlone) {
  const std::string sealed = SealNote(kSecret, "rank.N.1", "a note");
  EXPECT_EQ(sealed.size(), std::string("a note").size() + kSealBytes);
  EXPECT_EQ(OpenNote(kSecret, "rank.N.1", sealed).value(), "a note");
  EXPECT_EQ(OpenNote(kSecret, "k", SealNote(kSecret, "k", "")).value(), "");
  EXPECT_FALSE(OpenNote(kSecret, "rank.N.2", sealed).ok()) << "moved to another name";
  EXPECT_FALSE(OpenNote(kOther, "rank.N.1", sealed).ok());
  EXPECT_FALSE(OpenNote(kSecret, "rank.N.1", "a note").ok());
  EXPECT_FALSE(OpenNote(kSecret, "rank.N.1", "").ok());
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    EXPECT_FALSE(OpenNote(kSecret, "rank.N.1", changed).ok()) << i;
  }
}

TEST(NoteSeal, WithoutASecretTextsStayAsTheyAre) {
  EXPECT_EQ(SealNote("", "k", "a note"), "a note");
  EXPECT_EQ(OpenNote("", "k", "a note").value(), "a note");
  EXPECT_FALSE(OpenNote("", "k", SealNote(kSecret, "k", "a note")).ok()) << "the others have one";
}

TEST(NoteSeal, V4_TheKeyOfAWorldFollowsFromTheSecret) {
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
