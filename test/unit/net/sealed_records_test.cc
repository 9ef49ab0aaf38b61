// Records that open, and records that do not: of one connection and direction, in their order,
// untouched.
#include "runtime/net/sealed_records.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {
namespace {

const std::string kKey(kRecordKeyBytes, 'k');
const std::string kOtherKey(kRecordKeyBytes, 'o');

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// Each in a record of its own.
std::vector<std::string> Seal(const std::vector<std::string>& plain,
                              const std::string& key = kKey) {
  RecordSealer sealer(key);
  std::vector<std::string> records;
  for (const std::string& bytes : plain) {
    std::string wire;
    EXPECT_TRUE(sealer.Seal(bytes, wire).ok());
    records.push_back(wire);
  }
  return records;
}

// The bytes that came out, and whether all of them opened.
std::pair<std::string, bool> Open(const std::vector<std::string>& records,
                                  const std::string& key = kKey) {
  RecordOpener opener(key);
  std::string plain;
  for (const std::string& record : records) {
    if (!opener.Open(record, plain).ok()) return {plain, false};
  }
  return {plain, true};
}

TEST(SealedRecords, OpenInAnyPieces) {
  std::string long_one;
  for (size_t i = 0; i < 3 * kMostRecordBytes + 7; ++i) long_one += static_cast<char>(i * 7);
  for (const std::string& plain : {std::string("a"), std::string("some words"), long_one}) {
    const std::string wire = Seal({plain})[0];
    EXPECT_EQ(wire.find(plain.substr(0, 8)), plain.size() < 8 ? wire.find(plain) : wire.npos);
    for (size_t piece : {size_t{1}, size_t{3}, size_t{4096}, wire.size()}) {
      RecordOpener opener(kKey);
      std::string opened;
      for (size_t at = 0; at < wire.size(); at += piece)
        ASSERT_TRUE(opener.Open(std::string_view(wire).substr(at, piece), opened).ok());
      EXPECT_EQ(opened, plain);
    }
  }
  EXPECT_EQ(Seal({std::string(10, 'x')})[0].size(), 10 + kRecordOverhead);
}

TEST(SealedRecords, EveryBitOfEveryRecordCounts) {
  const std::vector<std::string> records = Seal({"first", "second"});
  for (size_t which = 0; which < records.size(); ++which) {
    for (size_t bit = 0; bit < 8 * records[which].size(); ++bit) {
      std::vector<std::string> changed = records;
      changed[which][bit / 8] ^= static_cast<char>(1 << (bit % 8));
      const auto [plain, whole] = Open(changed);
      EXPECT_EQ(plain, which == 0 ? "" : "first") << which << " " << bit;
      // A length that grew waits for more; the end of the connection tells then.
      EXPECT_TRUE(!whole || bit < 32) << which << " " << bit;
    }
  }
}

TEST(SealedRecords, OrderAndPlaceCount) {
  const std::vector<std::string> r = Seal({"one", "two", "three"});
  struct Case {
    const char* what;
    std::vector<std::string> records;
    std::string opened;
  };
  const std::vector<Case> table = {
      {"untouched", {r[0], r[1], r[2]}, "onetwothree"},
      {"repeated", {r[0], r[0], r[1]}, "one"},
      {"left out", {r[0], r[2]}, "one"},
      {"the first left out", {r[1], r[2]}, ""},
      {"reordered", {r[1], r[0], r[2]}, ""},
      {"an old one again", {r[0], r[1], r[0]}, "onetwo"},
      {"another connection's", {r[0], Seal({"one", "two"}, kOtherKey)[1]}, "one"},
      {"not sealed", {r[0], std::string("\x05\0\0\0hello0123456789abcdef", 25)}, "one"},
      {"no bytes", {r[0], std::string("\0\0\0\0", 4) + std::string(16, 'x')}, "one"},
      {"too many bytes", {r[0], std::string("\0\0\1\0", 4) + std::string(16, 'x')}, "one"},
  };
  for (const Case& c : table) {
    const auto [plain, whole] = Open(c.records);
    EXPECT_EQ(plain, c.opened) << c.what;
    EXPECT_EQ(whole, c.opened == "onetwothree") << c.what;
  }
}

TEST(SealedRecords, NothingOpensAfterABadOne) {
  std::vector<std::string> records = Seal({"one", "two"});
  RecordOpener opener(kKey);
  std::string plain, bad = records[0];
  bad.back() ^= 1;
  EXPECT_FALSE(opener.Open(bad, plain).ok());
  for (const std::string& record : records) EXPECT_FALSE(opener.Open(record, plain).ok());
  EXPECT_EQ(plain, "");
}

TEST(SealedRecords, AHalfRecordShowsNothing) {
  const std::string record = Seal({"secret"})[0];
  for (size_t length = 0; length < record.size(); ++length) {
    const auto [plain, whole] = Open({record.substr(0, length)});
    EXPECT_EQ(plain, "") << length;
    EXPECT_TRUE(whole) << length;
  }
}

TEST(SealedRecords, AKeyOfAWrongLengthSealsNothing) {
  std::string wire;
  EXPECT_EQ(RecordSealer("short").Seal("x", wire).code(), Code::kInternal);
  EXPECT_EQ(wire, "");
  EXPECT_FALSE(RecordOpener("").Open(Seal({"x"})[0], wire).ok());
}

// RFC 5869, A.1 and A.3; 32 bytes of the output.
TEST(SessionKeys, AreThoseOfTheStandard) {
  const std::string ikm(22, '\x0b');
  EXPECT_EQ(HkdfSha256(FromHex("000102030405060708090a0b0c"), ikm, FromHex("f0f1f2f3f4f5f6f7f8f9")),
            FromHex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"));
  EXPECT_EQ(HkdfSha256("", ikm, ""),
            FromHex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"));
}

std::pair<MeshSessionKeys, MeshSessionKeys> ShakeHands(const std::string& key) {
  MeshInitiator initiator({key, 1, 5}, 6);
  MeshResponder responder({key, 1, 6});
  const std::string answer = *responder.Receive(initiator.hello());
  EXPECT_TRUE(responder.Receive(*initiator.Receive(answer)).ok());
  return {initiator.SessionKeys(), responder.SessionKeys()};
}

TEST(SessionKeys, BothEndsHaveThemAndNoOtherConnectionOrDirection) {
  const auto [ours, theirs] = ShakeHands("key");
  EXPECT_EQ(ours.from_initiator, theirs.from_initiator);
  EXPECT_EQ(ours.from_responder, theirs.from_responder);
  EXPECT_EQ(ours.from_initiator.size(), kRecordKeyBytes);
  EXPECT_NE(ours.from_initiator, ours.from_responder);
  const auto [again, again_theirs] = ShakeHands("key");
  EXPECT_NE(again.from_initiator, ours.from_initiator);
  EXPECT_NE(again.from_responder, ours.from_responder);
}

}  // namespace
}  // namespace hvd
