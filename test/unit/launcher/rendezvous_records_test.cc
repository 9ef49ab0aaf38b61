#include "launcher/external/adopt/rendezvous_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "launcher/external/adopt/adopt.h"
#include "launcher/external/adopt/http_store.h"

namespace hvd {
namespace {

const std::string kA(16, 'a'), kB(16, 'b'), kKey(64, '1');

// Two ranks on host A, one on host B.
WorldRecord SmallWorld() { return {8, kKey, {kA, kB}, {{0, 0, 2}, {1, 0, 1}}}; }

TEST(RendezvousRecords, EveryNoteHasItsText) {
  EXPECT_EQ(EncodeRecord(RankEntry{kA, 3, 7}), "hvd-rank-1 aaaaaaaaaaaaaaaa 3 7");
  EXPECT_EQ(EncodeRecord(SmallWorld()),
            "hvd-world-2 8 " + kKey + " 2 aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb 2 0 0 2 1 1 0 1 1");
}

TEST(RendezvousRecords, MoreHostsOrRunsThanRanksAreRefused) {
  WorldRecord hosts{8, kKey, {kA, kB, std::string(16, 'c'), std::string(16, 'd')}, {{0, 0, 3}}};
  EXPECT_EQ(DecodeWorldRecord(EncodeRecord(hosts), 3).status().message(),
            "names 4 hosts for a world of 3 ranks");
  EXPECT_EQ(DecodeWorldRecord("hvd-world-2 1 " + kKey + " 4000000000 " + kA, 3).status().message(),
            "names 4000000000 hosts for a world of 3 ranks");
  WorldRecord runs{8, kKey, {kA}, {{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 0}}};
  EXPECT_EQ(DecodeWorldRecord(EncodeRecord(runs), 3).status().message(),
            "is no note about a world");
}

TEST(RendezvousRecords, EveryNoteSurvivesAndNoPartOfIt) {
  RankEntry rank{kA, 3, 7};
  WorldRecord world = SmallWorld();
  EXPECT_EQ(DecodeRankEntry(EncodeRecord(rank)).value(), rank);
  EXPECT_EQ(DecodeWorldRecord(EncodeRecord(world), 3).value(), world);
  EXPECT_LE(EncodeRecord(world).size(), MostBytesOfWorldRecord(3));
  for (const std::string& text : {EncodeRecord(rank), EncodeRecord(world)}) {
    // Cut inside the last number it may still be one.
    for (size_t length = 0; length + 1 < text.size(); ++length) {
      EXPECT_FALSE(DecodeRankEntry(text.substr(0, length)).ok()) << length;
      EXPECT_FALSE(DecodeWorldRecord(text.substr(0, length), 3).ok()) << length;
    }
    EXPECT_FALSE(DecodeRankEntry(text + " 1").ok());
    EXPECT_FALSE(DecodeWorldRecord(text + "\n", 3).ok());
  }
  EXPECT_FALSE(DecodeRankEntry(EncodeRecord(world)).ok());
  EXPECT_FALSE(DecodeRankEntry("hvd-rank-1 " + std::string(1000, 'x') + " 1 1").ok());
}

TEST(RendezvousRecords, AWorldThatCannotBeIsRefused) {
  struct Case {
    const char* what;
    std::function<void(WorldRecord&)> change;
    const char* says;
  };
  const std::string c(16, 'c');
  for (const Case& wrong : {
           Case{"a host of which the layout knows nothing",
                [&](WorldRecord& w) { w.tokens.push_back(c); }, "names 3 hosts for a layout of 2"},
           Case{"a host without a name", [](WorldRecord& w) { w.tokens.pop_back(); },
                "names 1 hosts for a layout of 2"},
           Case{"one host twice", [](WorldRecord& w) { w.tokens[1] = w.tokens[0]; },
                "one host twice"},
           Case{"a token that none of us makes", [](WorldRecord& w) { w.tokens[1] = "b"; },
                "a host without a token"},
           Case{"no hosts", [](WorldRecord& w) { w.tokens.clear(); }, "names 0 hosts"},
           Case{"no layout", [](WorldRecord& w) { w.layout.clear(); }, "a layout of 0 ranks"},
           Case{"too many ranks", [](WorldRecord& w) { w.layout[0].count = 4'000'000'000; },
                "a layout of 4000000000 ranks"},
           Case{"too many hosts", [](WorldRecord& w) { w.layout[1].hosts = 4'000'000'000; },
                "a layout of 4000000002 ranks"},
           Case{"a far host", [](WorldRecord& w) { w.layout[1].host = 4'294'967'295; },
                "a layout without local rank"},
           Case{"a far local rank", [](WorldRecord& w) { w.layout[1].local_rank = 4'294'967'295; },
                "a layout without local rank"},
           Case{"no generation", [](WorldRecord& w) { w.generation = 0; },
                "a generation that cannot be"},
           Case{"the last of all generations", [](WorldRecord& w) { w.generation = UINT64_MAX; },
                "a generation that cannot be"},
           Case{"a key that anybody can guess", [](WorldRecord& w) { w.data_key = "0"; }, "no key"},
       }) {
    WorldRecord world = SmallWorld();
    wrong.change(world);
    Result<WorldRecord> read = DecodeWorldRecord(EncodeRecord(world), 3);
    ASSERT_FALSE(read.ok()) << wrong.what;
    EXPECT_THAT(read.status().message(), testing::HasSubstr(wrong.says)) << wrong.what;
  }
  EXPECT_FALSE(DecodeWorldRecord(EncodeRecord(SmallWorld()), 4).ok()) << "of another size";
}

// Counts are looked at before anything is made as large as they say.
TEST(RendezvousRecords, NoCountIsBelieved) {
  const std::string head = "hvd-world-2 1 " + kKey + " ";
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += " " + kA;
  for (const std::string& text :
       {head + "4000000000 " + kA, head + "100000" + many, head + "1 " + kA + " 4000000000 0 0 1 1",
        head + "1 " + kA + " 1 0 0 4294967295 4294967295"}) {
    EXPECT_FALSE(DecodeWorldRecord(text, 3).ok());
  }
  EXPECT_FALSE(DecodeRankEntry("hvd-rank-1 " + kA + " 4294967295 1").ok());
  EXPECT_FALSE(DecodeRankEntry("hvd-rank-1 " + kA + " 0 18446744073709551615").ok());
  EXPECT_TRUE(PartOfHost({{0, 0}, {1, 0}}, 4'294'967'295).slots.empty());
}

TEST(RendezvousRecords, AWorldHasExactlyTheRanksThatWaitHere) {
  WorldRecord world = SmallWorld();
  HostWorld part = PartOfWaiting(world, {{0, 1}, 3, 7}, kA).value();
  EXPECT_EQ(part.slots.size(), 2u);
  EXPECT_EQ(part.data_key, kKey);
  struct Case {
    WaitingHost here;
    std::string token, says;
  };
  for (const Case& wrong :
       {Case{{{0, 1}, 3, 7}, kB, "other ranks on this host"},
        Case{{{1, 0}, 3, 7}, kA, "other ranks on this host"},
        Case{{{0}, 3, 7}, kA, "other ranks on this host"},
        Case{{{0, 1}, 3, 8}, kA, "a generation that is over"},
        Case{{{0, 1}, 2, 7}, kA, "a layout of 3 ranks"},
        Case{{{0, 1}, 3, 7}, std::string(16, 'c'), "nothing about this host"}}) {
    EXPECT_THAT(PartOfWaiting(world, wrong.here, wrong.token).status().message(),
                testing::HasSubstr(wrong.says));
  }
}

TEST(RendezvousRecords, ARefusalIsOnePrintableReason) {
  EXPECT_EQ(DecodeRefusal(EncodeRefusal("no such rank")), "no such rank");
  EXPECT_EQ(DecodeRefusal("hvd-no-world-1 \x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_LT(DecodeRefusal("hvd-no-world-1 " + std::string(100'000, 'x'))->size(), 2000u);
  EXPECT_FALSE(DecodeRefusal(EncodeRecord(SmallWorld())).has_value());
}

TEST(RendezvousRecords, HostsAreNumberedByTheirFirstRanks) {
  WorldRecord world =
      WorldOfRecords({{"b", 0, 0}, {"a", 0, 4}, {"b", 1, 0}, {"a", 1, 4}}, "key").value();
  EXPECT_EQ(world.generation, 5u) << "newer than any host has seen";
  EXPECT_EQ(world.tokens, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(PlacesOf(world.layout, 4).value(),
            (std::vector<RankPlace>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_FALSE(WorldOfRecords({{"a", 0, 0}, {"a", 0, 0}}, "key").ok()) << "one place twice";
  EXPECT_FALSE(WorldOfRecords({{"a", 1, 0}, {"b", 0, 0}}, "key").ok()) << "a place left out";
}

TEST(RendezvousRecords, APartOfAWorldHasItsCrossRanks) {
  std::vector<RankPlace> places = {{0, 0}, {1, 0}, {0, 1}, {2, 0}};
  HostWorld first = PartOfHost(places, 0), last = PartOfHost(places, 2);
  EXPECT_EQ(first.slots, (std::vector<Placement>{{0, 0, 0, 2, 0, 3}, {2, 0, 1, 2, 0, 1}}));
  EXPECT_EQ(last.slots, (std::vector<Placement>{{3, 2, 0, 1, 2, 3}}));
  EXPECT_FALSE(first.homogeneous);
  EXPECT_EQ(first.size, 4u);
  EXPECT_EQ(PlacesOf(last.layout, 4).value(), places);
  EXPECT_TRUE(PartOfHost({{0, 0}, {1, 0}}, 1).homogeneous);
}

TEST(HttpStore, RequestsAreOnePathElementPerName) {
  EXPECT_EQ(HttpRequest("GET", "h:1", "scope", "a/b c%", ""),
            "GET /scope/a%2Fb%20c%25 HTTP/1.0\r\nHost: h:1\r\n\r\n");
  EXPECT_EQ(HttpRequest("PUT", "h:1", "s", "k", "value"),
            "PUT /s/k HTTP/1.0\r\nHost: h:1\r\nContent-Length: 5\r\n\r\nvalue");
}

TEST(HttpStore, AnswersAreWholeOrRefused) {
  struct Case {
    const char* bytes;
    int code;
    const char* body;
  };
  for (const Case& c : {Case{"HTTP/1.0 200 OK\r\n\r\nbody", 200, "body"},
                        Case{"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, ""},
                        Case{"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nbody", 200, "bo"},
                        Case{"HTTP/1.1 200\r\n\r\n", 200, ""}}) {
    Result<HttpReply> reply = ParseHttpReply(c.bytes);
    ASSERT_TRUE(reply.ok()) << c.bytes;
    EXPECT_EQ(reply->code, c.code);
    EXPECT_EQ(reply->body, c.body);
  }
  for (const char* bad : {"", "HTTP/1.0 200 OK\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.0 20x OK\r\n\r\n",
                          "HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nbody",
                          "HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\nbody"}) {
    EXPECT_FALSE(ParseHttpReply(bad).ok()) << bad;
  }
}

TEST(Adopt, ArgumentsAreCheckedBeforeAnythingBegins) {
  AdoptOptions options =
      ParseAdoptArguments({"--adopt", "id", "--slots", "2", "--size", "4", "--store", "h:1"})
          .value();
  EXPECT_EQ(options.slots, 2u);
  EXPECT_FALSE(options.host.empty()) << "the machine's, when none is given";
  using Arguments = std::vector<std::string>;
  for (const Arguments& bad :
       {Arguments{"--adopt"}, Arguments{"--adopt", "id"},
        Arguments{"--adopt", "id", "--slots", "0", "--size", "1"},
        Arguments{"--adopt", "id", "--slots", "3", "--size", "2"},
        Arguments{"--adopt", "id", "--slots", "1", "--size", "99999999"},
        Arguments{"--adopt", "id", "--slots", "1", "--size", "1", "--what", "x"}}) {
    EXPECT_FALSE(ParseAdoptArguments(bad).ok());
  }
}

}  // namespace
}  // namespace hvd
