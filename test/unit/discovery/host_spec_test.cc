#include "discovery/host_spec.h"

#include <gtest/gtest.h>

#include "discovery/host_range.h"

namespace hvd {
namespace {

using Specs = std::vector<HostSpec>;
using Names = std::vector<std::string>;

constexpr auto kNotSaid = std::nullopt;

std::string Complaint(const Result<Specs>& result) {
  return result.ok() ? "" : result.status().message();
}

Specs List(std::string_view text) {
  auto specs = ParseHostList(text);
  EXPECT_TRUE(specs.ok()) << text << ": " << specs.status().message();
  return specs.ok() ? *specs : Specs();
}

Specs File(std::string_view text) {
  auto specs = ParseHostFile(text, "hosts");
  EXPECT_TRUE(specs.ok()) << text << ": " << specs.status().message();
  return specs.ok() ? *specs : Specs();
}

TEST(HostList, ReadsNamesAndSlots) {
  EXPECT_EQ(List("localhost:4"), (Specs{{"localhost", 4}}));
  EXPECT_EQ(List("a"), (Specs{{"a", kNotSaid}}));
  EXPECT_EQ(List(" a:1 , b-2.x_y:3,c"), (Specs{{"a", 1}, {"b-2.x_y", 3}, {"c", kNotSaid}}));
  EXPECT_EQ(List("10.0.0.7:2,_x"), (Specs{{"10.0.0.7", 2}, {"_x", kNotSaid}}));
}

TEST(HostList, ReadsUsersAndPorts) {
  struct Row {
    const char* text;
    HostSpec spec;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"bob@a", {"a", kNotSaid, "bob"}},
           {"bob@a:2", {"a", 2, "bob"}},
           {"_b.o-b+x@example.org@a:2", {"a", 2, "_b.o-b+x@example.org"}},
           {"[a]", {"a", kNotSaid}},
           {"[a]:2222", {"a", kNotSaid, "", 2222}},
           {"[a]:22", {"a", kNotSaid, "", 22}},
           {"[a]:222:4", {"a", 4, "", 222}},
           {"[a]::4", {"a", 4}},
           {"bob@[a]:2222:4", {"a", 4, "bob", 2222}},
           {"::1", {"::1", kNotSaid}},
           {"2001:db8::7", {"2001:db8::7", kNotSaid}},
           {"[::1]", {"::1", kNotSaid}},
           {"[::1]::2", {"::1", 2}},
           {"[::1]:2222", {"::1", kNotSaid, "", 2222}},
           {"[::1]:65535:65536", {"::1", 65536, "", 65535}},
           {"bob@[fe80::1%eth0]:2222:2", {"fe80::1%eth0", 2, "bob", 2222}},
           {"bob@::1", {"::1", kNotSaid, "bob"}},
       }) {
    EXPECT_EQ(List(row.text), Specs{row.spec}) << row.text;
  }
}

TEST(HostList, ReadsRanges) {
  EXPECT_EQ(List("node[01-03]:8,b"),
            (Specs{{"node01", 8}, {"node02", 8}, {"node03", 8}, {"b", kNotSaid}}));
  EXPECT_EQ(List("bob@[n[1,3]]:2222:4"), (Specs{{"n1", 4, "bob", 2222}, {"n3", 4, "bob", 2222}}));
  EXPECT_EQ(List("[1-2]x:3"), (Specs{{"1x", 3}, {"2x", 3}}));
  EXPECT_EQ(List("n[1-100000]").size(), 100'000U);
}

TEST(HostList, CountsANameThatComesAgain) {
  EXPECT_EQ(List("a,a,b"), (Specs{{"a", 1}, {"a", 1}, {"b", kNotSaid}}));
  EXPECT_EQ(List("a,a:3"), (Specs{{"a", 1}, {"a", 3}}));
  EXPECT_EQ(List("n[1-2],n1"), (Specs{{"n1", 1}, {"n2", kNotSaid}, {"n1", 1}}));
}

TEST(HostList, RefusesTheRestInOneSentence) {
  for (std::string text : {"",
                           ":2",
                           ",a",
                           "a,",
                           "a,,b",
                           "localhost:two",
                           "localhost:",
                           "a:0",
                           "a:-1",
                           "a:+1",
                           "a:1x",
                           "a:65537",
                           "a:99999999999999999999",
                           "a:2:3",
                           "-x:2",
                           "-oProxyCommand=id",
                           "[-x]:2222",
                           "[-x[1-2]]:2222",
                           "bob@-x",
                           "-lbob@a",
                           "@a",
                           "bob@",
                           "b ob@a",
                           "$(id)@a",
                           "a b:2",
                           "a;rm",
                           "^a",
                           "+n0",
                           "ssh://bob@a:22",
                           "[::1",
                           "[::1]2",
                           "[]",
                           "[]:22",
                           "[a]:",
                           "[a]:x",
                           "[a]:0:1",
                           "[a]:65536:1",
                           "[a]:2222:",
                           "[a]:2222:0",
                           "[a]:2222:1:1",
                           "1:2:3:4:5:6:7:8:9",
                           "[fe80::1%]:2222",
                           "[fe80::1%-x]:2222",
                           "a]",
                           "n[1-2",
                           "n[]",
                           "n[2-1]",
                           "n[a-b]",
                           "n[1-]",
                           "n[1,]",
                           "n[[1-2]]",
                           "n[1-100001]",
                           "n[1-100000],b",
                           "n[0-999][0-999][0-999][0-999][0-999][0-999][0-999][0-999][0-999]",
                           "n[0-999999999999]",
                           "n[0-9999999999999]",
                           "a\n:2",
                           "\x1b[31m:1"}) {
    std::string complaint = Complaint(ParseHostList(text));
    EXPECT_NE(complaint, "") << text;
    EXPECT_EQ(complaint.find_first_of("\n\x1b"), std::string::npos) << complaint;
    EXPECT_LT(complaint.size(), 400U) << complaint;
  }
  EXPECT_LT(Complaint(ParseHostList(std::string(10'000, ':'))).size(), 300u);
  EXPECT_LT(Complaint(ParseHostList("a:" + std::string(10'000, '9'))).size(), 400u);
  EXPECT_NE(Complaint(ParseHostList(std::string(254, 'x'))), "");
  EXPECT_EQ(Complaint(ParseHostList(std::string(253, 'x'))), "");
  EXPECT_NE(Complaint(ParseHostList(std::string(250, 'x') + "[1-90000]")), "");
  EXPECT_NE(Complaint(ParseHostList(std::string("a\0b", 3))), "");
}

TEST(HostList, SaysWhatTheWriterMayHaveMeant) {
  struct Row {
    const char* text;
    const char* said;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"[::1]:4",
            "'[::1]:4' can mean port 4 or 4 slots; write [::1]::4 for the slots or [::1]:4:1 for "
            "the port and "
            "one slot"},
           {"-x:2", "'-x:2' is no host: it begins like an option; try a name, as in localhost:2"},
           {"a:2 b:2", "hosts are separated by commas, as in a:2,b:2"},
           {"a,,b", "an entry of the list is empty"},
           {"a:2:3", "try name:slots, [name]:port:slots, or [address]:port:slots for IPv6"},
           {"ssh://bob@a:2222", "[host]:2222"},
           {"+n0", "write their names"},
           {"a:two",
            "in 'a:two' the number of slots 'two' is not a number from 1 to 65536; try "
            "localhost:2"},
           {"[a]:99999:1", "the port '99999' is not a number from 1 to 65535"},
           {"-lx@a", "the user '-lx' cannot be passed on"},
           {"n[1-2", "has brackets"},
           {"n[9-1]", "the range in 'n[9-1]' runs backwards in '9-1'"},
           {"n[0-999999]",
            "'n[0-999999]' makes more than the 100000 hosts that a job may still have"},
       }) {
    EXPECT_NE(Complaint(ParseHostList(row.text)).find(row.said), std::string::npos)
        << Complaint(ParseHostList(row.text));
  }
}

TEST(HostFile, ReadsTheFourDialects) {
  Specs two = {{"a", 2}, {"b", 3}};
  EXPECT_EQ(File("a slots=2\nb slots=3\n"), two) << "Horovod, DeepSpeed";
  EXPECT_EQ(File("a slots=2 # words\n\n  \t\n# more\nb slots=3\n"), two) << "DeepSpeed";
  EXPECT_EQ(File("a slots = 2\n// words\nb count=3\r\n"), two) << "Open MPI";
  EXPECT_EQ(File("a:2\nb:3 binding=core ifname=ib0"), two) << "MPICH";
  EXPECT_EQ(File("\xef\xbb\xbf"
                 "a\na\nb\nb\nb\n"),
            (Specs{{"a", 1}, {"a", 1}, {"b", 1}, {"b", 1}, {"b", 1}}))
      << "a line for each slot";
}

TEST(HostFile, ReadsWhatElseALineSays) {
  struct Row {
    const char* text;
    HostSpec spec;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"a", {"a", kNotSaid}},
           {"a slots=2 max_slots=4", {"a", 2, "", 0, 4}},
           {"a max-slots=4 slots=4", {"a", 4, "", 0, 4}},
           {"a max_slots=4", {"a", 4, "", 0, 4}},
           {"a:2 slots_max=4", {"a", 2, "", 0, 4}},
           {"a cpu=2 rank=7", {"a", 2}},
           {"bob@a slots=2", {"a", 2, "bob"}},
           {"a user=bob", {"a", kNotSaid, "bob"}},
           {"a username = bob port =2222", {"a", kNotSaid, "bob", 2222}},
           {"[a]:443 slots=2", {"a", 2, "", 443}},
           {"[::1]:2222:2", {"::1", 2, "", 2222}},
           {"::1 slots=2", {"::1", 2}},
       }) {
    EXPECT_EQ(File(row.text), Specs{row.spec}) << row.text;
  }
  EXPECT_EQ(File("n[08-09] slots=2"), (Specs{{"n08", 2}, {"n09", 2}}));
}

TEST(HostFile, NamesFileAndLine) {
  EXPECT_TRUE(Complaint(ParseHostFile("a\n\nb slots=x\n", "hosts")).starts_with("hosts, line 3: "));
  EXPECT_TRUE(Complaint(ParseHostFile("a\xc2\xa0slots=2\n", "hosts"))
                  .ends_with("; the line has a no-break space (U+00A0), as word processors and web "
                             "pages put it: type it again"));
  EXPECT_EQ(Complaint(ParseHostFile("# nobody\n", "hosts")), "the host file hosts names no host");
  EXPECT_EQ(Complaint(ParseHostFile("a slot=2", "hosts")),
            "hosts, line 1: 'slot=2' is not understood; did you mean slots=?");
  for (std::string text :
       {"a 4", "a =4", "a slots=", "a:2 slots=4", "a slots=1 count=1", "a slots=3 max_slots=2",
        "a max_slots=1 slots_max=1", "bob@a user=eve", "a user=-x", "a user=", "a user=x user=y",
        "[a]:2222 port=2222", "a port=0", "a port=1 port=1", "-x slots=2", "slots=2", "a,b",
        "n[1-100000]\nb", "[::1]:4"}) {
    EXPECT_TRUE(Complaint(ParseHostFile(text, "hosts")).starts_with("hosts, line ")) << text;
  }
}

TEST(HostRange, KeepsZerosAndMultiplies) {
  struct Row {
    const char* pattern;
    Names names;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"a", {"a"}},
           {"", {""}},
           {"n[7]", {"n7"}},
           {"n[08-11]", {"n08", "n09", "n10", "n11"}},
           {"n[8-11]", {"n8", "n9", "n10", "n11"}},
           {"n[099-101]b", {"n099b", "n100b", "n101b"}},
           {"n[1-3,7],gpu", {"n1,gpu", "n2,gpu", "n3,gpu", "n7,gpu"}},
           {"n[1-2]-ib[0-1]", {"n1-ib0", "n1-ib1", "n2-ib0", "n2-ib1"}},
           {"[1-2][1,5]", {"11", "15", "21", "25"}},
       }) {
    auto names = ExpandHostRange(row.pattern);
    ASSERT_TRUE(names.ok()) << names.status().message();
    EXPECT_EQ(*names, row.names) << row.pattern;
  }
  EXPECT_TRUE(ExpandHostRange("n[1-3]", 3).ok());
  EXPECT_FALSE(ExpandHostRange("n[1-4]", 3).ok());
  EXPECT_FALSE(ExpandHostRange("n", 0).ok());
  EXPECT_FALSE(ExpandHostRange("n[0-65535][0-65535][0-65535][0-65535]").ok()) << "2^64 names";
  EXPECT_FALSE(ExpandHostRange("n[0-999999999999,0-999999999999]").ok());
}

TEST(HostRange, ListsAreCutOutsideOfBrackets) {
  std::string_view list = "n[1-3,7],b,";
  bool last = true;
  EXPECT_EQ(PopListItem(list, last), "n[1-3,7]");
  EXPECT_FALSE(last);
  EXPECT_EQ(PopListItem(list, last), "b");
  EXPECT_FALSE(last);
  EXPECT_EQ(PopListItem(list, last), "");
  EXPECT_TRUE(last);
}

TEST(NamesHostFile, IsAPathOrAFileThatIsNoHost) {
  struct Row {
    const char* word;
    WordFacts facts;
    bool file;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"./hosts", {}, true},
           {"/tmp/hosts", {.is_file = true}, true},
           {"hosts.txt", {.is_file = true}, true},
           {"hosts.txt", {}, false},
           {"localhost", {.is_file = true, .is_this_machine = true}, false},
           {"a:2", {.is_file = true}, false},
           {"a,b", {.is_file = true}, false},
           {"bob@a", {.is_file = true}, false},
           {"n[1-2]", {.is_file = true}, false},
           {"ssh://bob@a", {}, false},
       }) {
    EXPECT_EQ(NamesHostFile(row.word, row.facts), row.file) << row.word;
  }
}

}  // namespace
}  // namespace hvd
