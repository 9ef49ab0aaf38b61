#include "launcher/meeting_notes.h"

#include <gtest/gtest.h>

#include "launcher/adopt.h"
#include "launcher/http_store.h"

namespace hvd {
namespace {

TEST(MeetingNotes, EveryNoteSurvivesAndNoPartOfIt) {
  RankNote rank{"0123abcd", 3, 7};
  WorldNote world{8, "key", {"a", "b"}, {{0, 0, 2}, {1, 0, 1}}};
  EXPECT_EQ(DecodeRankNote(EncodeNote(rank)).value(), rank);
  EXPECT_EQ(DecodeWorldNote(EncodeNote(world)).value(), world);
  for (const std::string& text : {EncodeNote(rank), EncodeNote(world)}) {
    // Cut inside the last number it may still be one.
    for (size_t length = 0; length + 1 < text.size(); ++length) {
      EXPECT_FALSE(DecodeRankNote(text.substr(0, length)).ok()) << length;
      EXPECT_FALSE(DecodeWorldNote(text.substr(0, length)).ok()) << length;
    }
    EXPECT_FALSE(DecodeRankNote(text + " 1").ok());
    EXPECT_FALSE(DecodeWorldNote(text + "\n").ok());
  }
  EXPECT_FALSE(DecodeRankNote(EncodeNote(world)).ok());
  EXPECT_FALSE(DecodeWorldNote("hvd-world-2 1 k 4000000000 a").ok());
  EXPECT_FALSE(DecodeRankNote("hvd-rank-1 " + std::string(1000, 'x') + " 1 1").ok());
}

TEST(MeetingNotes, HostsAreNumberedByTheirFirstRanks) {
  WorldNote world =
      WorldOfNotes({{"b", 0, 0}, {"a", 0, 4}, {"b", 1, 0}, {"a", 1, 4}}, "key").value();
  EXPECT_EQ(world.epoch, 5u) << "newer than any host has seen";
  EXPECT_EQ(world.tokens, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(PlacesOf(world.layout, 4).value(),
            (std::vector<RankPlace>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_FALSE(WorldOfNotes({{"a", 0, 0}, {"a", 0, 0}}, "key").ok()) << "one place twice";
  EXPECT_FALSE(WorldOfNotes({{"a", 1, 0}, {"b", 0, 0}}, "key").ok()) << "a place left out";
}

TEST(MeetingNotes, APartOfAWorldHasItsCrossRanks) {
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
