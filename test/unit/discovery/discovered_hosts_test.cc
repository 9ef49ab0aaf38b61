#include "discovery/discovered_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// "a:2 b:- c@2222:4 bob@d:1", or the message.
std::string Parsed(std::string_view text, std::vector<std::string>& notes) {
  const Result<std::vector<HostSpec>> specs = ParseDiscoveredHosts(text, notes);
  if (!specs.ok()) return specs.status().message();
  std::string shown;
  for (const HostSpec& spec : *specs) {
    shown += (shown.empty() ? "" : " ") + (spec.user.empty() ? "" : spec.user + "@") + spec.name +
             (spec.port == 0 ? "" : "/" + std::to_string(spec.port)) + ":" +
             (spec.slots ? std::to_string(*spec.slots) : "-");
  }
  return shown;
}

TEST(DiscoveredHosts, AreOneALine) {
  struct Case {
    std::string_view text, hosts;
  };
  const Case cases[] = {
      {"", ""},
      {"\n\n  \n", ""},
      {"# none today\n", ""},
      {"a:2\nb:4\n", "a:2 b:4"},
      {"a:2\nb:4", "a:2 b:4"},
      {"a:2\r\nb\r\n", "a:2 b:-"},
      {"\xef\xbb\xbf"
       "a:2\n",
       "a:2"},
      {"  a:2\t\n\nb\n", "a:2 b:-"},
      {"a:2 # the big one\n# c:2\nb:1\n", "a:2 b:1"},
      {"a slots=2\nb slots = 3\n", "a:2 b:3"},
      {"a slots=2 max_slots=4\n", "a:2"},
      {"[::1]::2\nfe80::1\n[10.0.0.1]:2222:3\n", "::1:2 fe80::1:- 10.0.0.1/2222:3"},
      {"[::1]:2222:2\n", "::1/2222:2"},
      {"bob@a:2\nb user=eve slots=1\n", "bob@a:2 eve@b:1"},
      {"node[08-10]:2\n", "node08:2 node09:2 node10:2"},
      // No slot is free there.
      {"a:0\nb:1\n", "b:1"},
      {"a slots=0\nb:1\n", "b:1"},
      {"::0\n", "::0:-"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(Parsed(c.text, notes), c.hosts) << c.text;
    EXPECT_THAT(notes, IsEmpty()) << c.text;
  }
}

TEST(DiscoveredHosts, AHostThatIsPrintedAgainCountsOnceByItsLastLine) {
  struct Case {
    std::string_view text, hosts, note;
  };
  const Case cases[] = {
      {"a:2\nb:1\na:2\n", "a:2 b:1", ""},
      {"a\na\n", "a:-", ""},
      {"a:2\nb:1\n\na:4\n", "a:4 b:1",
       "host a is on line 1 with 2 slots and on line 4 with 4; the last line counts"},
      {"a:2\na\n", "a:-",
       "host a is on line 1 with 2 slots and on line 2 with its own number of; the last line "
       "counts"},
      {"a:0\na:3\n", "a:3",
       "host a is on line 1 with 0 slots and on line 2 with 3; the last line "
       "counts"},
      {"a:3\na:0\n", "",
       "host a is on line 1 with 3 slots and on line 2 with 0; the last line "
       "counts"},
      {"[a]:2222:2\n[a]:2223:2\n", "a/2222:2 a/2223:2", ""},
  };
  for (const Case& c : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(Parsed(c.text, notes), c.hosts) << c.text;
    if (c.note.empty()) {
      EXPECT_THAT(notes, IsEmpty());
    } else {
      EXPECT_THAT(notes, ElementsAre(c.note));
    }
  }
}

TEST(DiscoveredHosts, ABadLineIsNamedByNumberAndText) {
  struct Case {
    std::string_view text, named;
  };
  const Case cases[] = {
      {"a:2\nb:two\n", "line 2 ('b:two'): in 'b:two' the number of slots 'two' is not a number"},
      {"a:2\n\n# c\n  a b  \n", "line 4 ('a b'): 'b' is not understood"},
      {"a:1:2\n", "line 1 ('a:1:2'): 'a:1:2' is no host"},
      {"a:-1\n", "line 1 ('a:-1')"},
      {":2\n", "line 1 (':2')"},
      {"-oProxyCommand=x:2\n", "line 1 ('-oProxyCommand=x:2')"},
      {"a:65537\n", "line 1 ('a:65537')"},
      {"a,b\n", "line 1 ('a,b')"},
      {"Error: no such cluster\n", "line 1 ('Error: no such cluster')"},
      {"a:2\n\x1b[31mb\n", "line 2 ('\\x1b[31mb')"},
      {std::string_view("a\0b:2\n", 6), "line 1 ("},
      {"node[1-99999]:1\nm[1-99999]:1\n", "line 2 ("},
  };
  for (const Case& c : cases) {
    std::vector<std::string> notes;
    const Result<std::vector<HostSpec>> specs = ParseDiscoveredHosts(c.text, notes);
    ASSERT_FALSE(specs.ok()) << c.text;
    EXPECT_EQ(specs.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(specs.status().message(), StartsWith(std::string(c.named)));
    EXPECT_LT(specs.status().message().size(), 400u);
  }
}

TEST(HostsByName, AreNotMergedAndKnowThisMachine) {
  std::vector<std::string> notes;
  const auto specs = ParseDiscoveredHosts("localhost:2\n127.0.0.1\na\nbob@b:3\n", notes);
  ASSERT_TRUE(specs.ok());
  const MachineFacts facts{[](const std::string& name) { return name.size() == 9; },
                           [](bool remote) { return remote ? 0U : 8U; }};
  EXPECT_THAT(HostsByName(*specs, facts),
              ElementsAre(HostSlots{.host = "localhost", .slots = 2},
                          HostSlots{.host = "127.0.0.1", .slots = 8},
                          HostSlots{.host = "a", .slots = 1, .remote = true, .slots_known = false},
                          HostSlots{.host = "b", .slots = 3, .user = "bob", .remote = true}));
}

TEST(HostsByName, ANameThatComesAgainHasTheSlotsOfAll) {
  const auto specs = ParseHostFile("a slots=2 max_slots=4\nb\na slots=1 max_slots=1\n", "f");
  ASSERT_TRUE(specs.ok());
  const MachineFacts facts{[](const std::string&) { return false; }, [](bool) { return 2U; }};
  EXPECT_THAT(HostsByName(*specs, facts),
              ElementsAre(HostSlots{.host = "a", .slots = 3, .max_slots = 5, .remote = true},
                          HostSlots{.host = "b", .slots = 2, .remote = true}));
}

}  // namespace
}  // namespace hvd
