#include "discovery/ssh_key.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr std::string_view kKey =
    "AAAAC3NzaC1lZDI1NTE5AAAAIP5aadBEf9luB7hLjNxCz4K8gq0U03fNyKjIveigQwh8";

std::string Hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    for (int nibble : {c >> 4 & 15, c & 15}) text += "0123456789abcdef"[nibble];
  }
  return text;
}

TEST(Base64, IsThatOfRfc4648) {
  for (auto [bytes, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""},
           {"f", "Zg=="},
           {"fo", "Zm8="},
           {"foo", "Zm9v"},
           {"foob", "Zm9vYg=="},
           {"fooba", "Zm9vYmE="},
           {"foobar", "Zm9vYmFy"},
           {"\xff\xfe\xfd", "//79"},
       }) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    if (*text != '\0') {
      EXPECT_EQ(DecodeBase64(text), bytes);
    }
  }
}

TEST(Base64, IsStrict) {
  for (const char* text : {"", "Z", "Zg", "Zg=", "Zm9", "Zg==Zg==", "Zg=v", "====", "=Zg=", "Zm 9v",
                           "Zm9v\n", "Zh==", "Zm9=", "Zm-_"}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

TEST(HmacSha1, IsThatOfRfc2202) {
  EXPECT_EQ(Hex(HmacSha1(std::string(20, '\x0b'), "Hi There")),
            "b617318655057264e28bc0b6fb378c8ef146be00");
  EXPECT_EQ(Hex(HmacSha1("Jefe", "what do ya want for nothing?")),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
  EXPECT_EQ(Hex(HmacSha1(std::string(80, '\xaa'),
                         "Test Using Larger Than Block-Size Key - Hash Key First")),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112");
}

TEST(SshKey, HasATypeAndAFingerprint) {
  std::string key = DecodeBase64(kKey).value();
  EXPECT_EQ(KeyTypeOf(key), "ssh-ed25519");
  EXPECT_EQ(Fingerprint(key), "SHA256:GElbMOqMnnUdxhho3A9P98/YtjB+LDmzn23U1Dzm1q4");
}

TEST(SshKey, IsNoneWithoutAType) {
  using std::string_literals::operator""s;
  for (const std::string& bytes : {""s, "\0\0\0"s, "\0\0\0\1"s, "\0\0\0\1a"s, "\0\0\0\0a"s,
                                   "\xff\xff\xff\xff"s + "ab"s, "\0\0\0\3a bc"s, "\0\0\0\3a,bc"s}) {
    EXPECT_EQ(KeyTypeOf(bytes), "") << Hex(bytes);
  }
  EXPECT_EQ(KeyTypeOf("\0\0\0\1ab"s), "a");
}

}  // namespace
}  // namespace hvd
