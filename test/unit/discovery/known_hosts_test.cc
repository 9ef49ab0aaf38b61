#include "discovery/known_hosts.h"

#include <gtest/gtest.h>

#include "discovery/ssh_key.h"

namespace hvd {
namespace {

using enum HostKeyVerdict;

std::string Key(const std::string& type, char seed = 'a') {
  return std::string(3, '\0') + static_cast<char>(type.size()) + type + std::string(32, seed);
}

std::string Line(const std::string& before, const std::string& key) {
  return before + " " + KeyTypeOf(key) + " " + EncodeBase64(key) + " bob@home\n";
}

const std::string kKey = Key("ssh-ed25519");
const std::string kOther = Key("ssh-ed25519", 'b');
const std::string kRsa = Key("ssh-rsa");

KnownHosts Read(const std::string& text) {
  KnownHosts known;
  known.Add(text, "known");
  EXPECT_EQ(known.skipped, std::vector<std::string>()) << text;
  return known;
}

TEST(KnownHosts, MatchesNamesAsOpenSshDoes) {
  struct Row {
    const char* names;
    const char* host;
    uint16_t port;
    bool known;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"a", "a", 22, true},
           {"a", "A", 22, true},
           {"A", "a", 22, true},
           {"a", "b", 22, false},
           {"a", "aa", 22, false},
           {"a", "a", 0, true},
           {"b,a", "a", 22, true},
           {"b,,a", "a", 22, true},
           {"10.0.0.7", "10.0.0.7", 22, true},
           {"10.0.0.*", "10.0.0.7", 22, true},
           {"10.0.0.*", "10.0.1.7", 22, false},
           {"node?", "node7", 22, true},
           {"node?", "node", 22, false},
           {"node?", "node77", 22, false},
           {"*", "anything", 22, true},
           {"*a*b*", "xxaxxbxx", 22, true},
           {"*a*b*", "xxbxxaxx", 22, false},
           {"*.example,!bad.example", "a.example", 22, true},
           {"*.example,!bad.example", "bad.example", 22, false},
           {"!bad.example,*.example", "bad.example", 22, false},
           {"!bad", "good", 22, false},
           {"!", "good", 22, false},
           {"[a]:2222", "a", 2222, true},
           {"[a]:2222", "a", 22, false},
           {"[a]:2222", "a", 2223, false},
           {"[a]:*", "a", 2222, true},
           {"[A]:2222", "a", 2222, true},
           {"a", "a", 2222, true},
           {"[::1]:2222", "::1", 2222, true},
           {"::1", "::1", 22, true},
       }) {
    HostKeyCheck check = CheckHostKey(Read(Line(row.names, kKey)), row.host, row.port, kKey);
    HostKeyCheck expected =
        row.known ? HostKeyCheck{kMatch, "known", 1, "ssh-ed25519"} : HostKeyCheck{};
    EXPECT_EQ(check, expected) << row.names << " " << row.host << " " << row.port;
  }
}

// Made by `ssh-keygen -H` from host.example, [host.example]:2222 and [2001:db8::7]:2222.
constexpr const char* kHashedFile =
    "|1|kDq80zbE1yF3EryzaegU9u/ab60=|AJ+UFo60luXF0rnFYE/H3dVASaU= ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIP5aadBEf9luB7hLjNxCz4K8gq0U03fNyKjIveigQwh8 \n"
    "|1|Z1bTZhFzzpO4ta+yrQENpjCLaoo=|coJyKzF8zmSEEH0eHRRIC98E6FI= ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIP5aadBEf9luB7hLjNxCz4K8gq0U03fNyKjIveigQwh8 \n"
    "|1|I0ZD5AnRYoYANmy6vI4LRkC4fr0=|D0EXQsOKaN5W5m1NEze9ExspoPs= ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIP5aadBEf9luB7hLjNxCz4K8gq0U03fNyKjIveigQwh8 \n";

TEST(KnownHosts, ReadsHashedNames) {
  KnownHosts known = Read(kHashedFile);
  std::string key = known.entries.at(0).key;
  EXPECT_EQ(CheckHostKey(known, "host.example", 22, key).line, 1U);
  EXPECT_EQ(CheckHostKey(known, "Host.Example", 2222, key).line, 1U) << "by its bare name";
  EXPECT_EQ(CheckHostKey(known, "2001:db8::7", 2222, key).line, 3U);
  EXPECT_EQ(CheckHostKey(known, "other.example", 22, key).verdict, kUnknown);
  EXPECT_EQ(CheckHostKey(known, "host.example", 22, kKey).verdict, kChanged);
  known.entries.erase(known.entries.begin());
  EXPECT_EQ(CheckHostKey(known, "host.example", 2222, key).line, 2U);
  EXPECT_EQ(CheckHostKey(known, "host.example", 22, key).verdict, kUnknown);
}

TEST(KnownHosts, DecidesAsOpenSshDoes) {
  struct Row {
    const char* what;
    std::string text;
    uint16_t port;
    HostKeyCheck check;
  };
  const HostKeyCheck unknown;
  for (const Row& row : std::initializer_list<Row>{
           {"nothing", "", 22, unknown},
           {"another key", Line("a", kOther), 22, {kChanged, "known", 1, "ssh-ed25519"}},
           {"a key of another type", Line("a", kRsa), 22, {kChanged, "known", 1, "ssh-rsa"}},
           {"one of several",
            Line("a", kOther) + Line("a", kRsa) + Line("a", kKey),
            22,
            {kMatch, "known", 3, "ssh-ed25519"}},
           {"revoked", Line("@revoked *", kKey), 22, {kRevoked, "known", 1, "ssh-ed25519"}},
           {"known and revoked later",
            Line("a", kKey) + Line("@revoked *", kKey),
            22,
            {kRevoked, "known", 2, "ssh-ed25519"}},
           {"changed and revoked",
            Line("a", kOther) + Line("@revoked a", kKey),
            22,
            {kRevoked, "known", 2, "ssh-ed25519"}},
           {"another one is revoked",
            Line("@revoked *", kOther) + Line("a", kKey),
            22,
            {kMatch, "known", 2, "ssh-ed25519"}},
           {"only another one is revoked", Line("@revoked *", kOther), 22, unknown},
           {"revoked elsewhere",
            Line("@revoked b", kKey) + Line("a", kKey),
            22,
            {kMatch, "known", 2, "ssh-ed25519"}},
           {"an authority",
            "\n" + Line("@cert-authority *", kRsa),
            22,
            {kAuthorityOnly, "known", 2, "ssh-rsa"}},
           {"the key of an authority",
            Line("@cert-authority *", kKey),
            22,
            {kAuthorityOnly, "known", 1, "ssh-ed25519"}},
           {"an authority and a key",
            Line("@cert-authority *", kRsa) + Line("a", kKey),
            22,
            {kMatch, "known", 2, "ssh-ed25519"}},
           {"an authority and another key",
            Line("@cert-authority *", kRsa) + Line("a", kOther),
            22,
            {kChanged, "known", 2, "ssh-ed25519"}},
           {"an authority of others", Line("@cert-authority *.b", kRsa), 22, unknown},
           {"another key under the bare name", Line("a", kOther), 2222, unknown},
           {"the same, and one at the port",
            Line("a", kOther) + Line("[a]:2222", kRsa),
            2222,
            {kChanged, "known", 2, "ssh-rsa"}},
           {"revoked under the bare name",
            Line("@revoked a", kKey) + Line("[a]:2222", kKey),
            2222,
            {kRevoked, "known", 1, "ssh-ed25519"}},
           {"authority under the bare name",
            Line("@cert-authority a", kRsa),
            2222,
            {kAuthorityOnly, "known", 1, "ssh-rsa"}},
       }) {
    EXPECT_EQ(CheckHostKey(Read(row.text), "a", row.port, kKey), row.check) << row.what;
  }
}

TEST(KnownHosts, NamesTheFileThatDecided) {
  KnownHosts known = Read(Line("b", kKey));
  known.Add(Line("b", kOther) + Line("a", kKey), "second");
  EXPECT_EQ(CheckHostKey(known, "a", 22, kKey), (HostKeyCheck{kMatch, "second", 2, "ssh-ed25519"}));
}

TEST(KnownHosts, LeavesBadLinesOutAndSaysSo) {
  std::string good = EncodeBase64(kKey);
  KnownHosts known;
  known.Add("# words\n\n" + Line("first", kKey) + "a\n" + "a ssh-ed25519\n" +
                "a ssh-ed25519 !!!!\n" + "a ssh-rsa " + good + "\n" + "@what a ssh-ed25519 " +
                good + "\n" + "@revoked ssh-ed25519 " + good + "\n" + "|1|x|y ssh-ed25519 " + good +
                "\n" + "|2|x|y ssh-ed25519 " + good + "\n" + "a 1024 35 12345678\n" +
                "a ssh-ed25519 AAAA\x1b[31m\n" + Line("last", kKey) + Line("dos", kKey),
            "known");
  EXPECT_EQ(known.entries.size(), 3U);
  EXPECT_EQ(known.skipped,
            (std::vector<std::string>{
                "known, line 4 is left out: it has no key",
                "known, line 5 is left out: it has no key",
                "known, line 6 is left out: it has a key that is no base64",
                "known, line 7 is left out: it has a key that is no 'ssh-rsa'",
                "known, line 8 is left out: it has the unknown mark '@what'",
                "known, line 9 is left out: it has no key",
                "known, line 10 is left out: it has a hashed name that cannot be read",
                "known, line 11 is left out: it has a hashed name that cannot be read",
                "known, line 12 is left out: it has a key of SSH 1, which nobody uses any more",
                "known, line 13 is left out: it has a key that is no base64",
            }));
  EXPECT_EQ(CheckHostKey(known, "last", 22, kKey).line, 14U);
}

TEST(KnownHosts, BoundsWhatItSays) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "x\n";
  KnownHosts known;
  known.Add(text, "known");
  EXPECT_EQ(known.skipped.size(), 20U);
}

TEST(KnownHosts, ReadsLinesOfOtherMachines) {
  KnownHosts known = Read("\xef\xbb\xbf" + Line("a", kKey) + "  \tb\tssh-ed25519  " +
                          EncodeBase64(kKey) + "\r\nc ssh-ed25519 " + EncodeBase64(kKey));
  for (const char* host : {"a", "b", "c"})
    EXPECT_EQ(CheckHostKey(known, host, 22, kKey).verdict, kMatch) << host;
}

TEST(KnownHosts, KeepsTheLinesOfOneHost) {
  KnownHosts known =
      Read(Line("b", kKey) + Line("[a]:2222", kRsa) + Line("@revoked *", kOther) + Line("a", kKey));
  EXPECT_EQ(LinesOf(known, "A", 2222).entries.size(), 3U);
  EXPECT_EQ(LinesOf(known, "a", 22).entries.size(), 2U);
  KnownHosts lines = LinesOf(known, "a", 2222);
  for (const std::string& key : {kKey, kOther, kRsa, Key("x")})
    EXPECT_EQ(CheckHostKey(lines, "a", 2222, key), CheckHostKey(known, "a", 2222, key));
  EXPECT_EQ(KnownTypes(lines, "a", 2222), KnownTypes(known, "a", 2222));
}

TEST(KnownHosts, TellsTheTypesToOfferFirst) {
  KnownHosts known =
      Read(Line("b", Key("x")) + Line("[a]:2222", kRsa) + Line("a", kKey) + Line("a", kOther) +
           Line("@revoked a", Key("y")) + Line("@cert-authority a", Key("z")));
  using Types = std::vector<std::string>;
  EXPECT_EQ(KnownTypes(known, "A", 22), (Types{"ssh-ed25519"}));
  EXPECT_EQ(KnownTypes(known, "a", 2222), (Types{"ssh-rsa", "ssh-ed25519"}));
  EXPECT_EQ(KnownTypes(known, "c", 22), Types());
}

TEST(KnownHostsLine, IsReadBack) {
  std::string salt(20, 's');
  for (uint16_t port : {0, 22, 2222}) {
    std::string plain = KnownHostsLine("Host.Example", port, kKey);
    std::string hashed = HashedKnownHostsLine("Host.Example", port, kKey, salt);
    for (const std::string& line : {plain, hashed}) {
      EXPECT_EQ(CheckHostKey(Read(line), "host.example", port, kKey).verdict, kMatch) << line;
      EXPECT_EQ(CheckHostKey(Read(line), "host.example", 2223, kKey).verdict,
                port == 2222 ? kUnknown : kMatch)
          << line;
    }
    EXPECT_EQ(hashed.find("example"), std::string::npos);
  }
  EXPECT_EQ(KnownHostsLine("A", 2222, kKey), "[a]:2222 ssh-ed25519 " + EncodeBase64(kKey) + "\n");
  EXPECT_EQ(KnownHostsLine("::1", 22, kKey), "::1 ssh-ed25519 " + EncodeBase64(kKey) + "\n");
}

TEST(KnownHostsLine, IsNotMadeOfWhatALineCannotHold) {
  for (const char* host :
       {"", "a b", "a\nb", "a,b", "*", "a?", "!a", "|1|x", "#a", "@revoked", "\xc3\xa4"})
    EXPECT_EQ(KnownHostsLine(host, 22, kKey), "") << host;
  EXPECT_EQ(KnownHostsLine("a", 22, "no key"), "");
  EXPECT_EQ(HashedKnownHostsLine("a", 22, kKey, "short"), "");
}

}  // namespace
}  // namespace hvd
