// Pickles of other processes: plain values, and nothing else.
#include "launcher/stall/plain_pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hvd {
namespace {

using PickleKind = PlainPickle::Kind;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

// Protocol 2, as PyTorch writes it.
std::string Pickle(const std::string& body) { return "\x80\x02" + body + "."; }

struct PickledScalar {
  const char* name;
  std::string body;
  PickleKind kind;
  int64_t number;
};

TEST(PlainPickle, ReadsEachKindOfNumber) {
  const PickledScalar kPickleRows[] = {
      {"none", "N", PickleKind::kNone, 0},
      {"true", "\x88", PickleKind::kBool, 1},
      {"false", "\x89", PickleKind::kBool, 0},
      {"BININT1", "K\xff", PickleKind::kInt, 255},
      {"BININT2", "M\x01\x02", PickleKind::kInt, 513},
      {"BININT", "J\xfe\xff\xff\xff", PickleKind::kInt, -2},
      {"LONG1", "\x8a\x05\x00\x00\x00\x00\x01"s, PickleKind::kInt, int64_t{1} << 32},
      {"LONG1 below zero", "\x8a\x01\xff", PickleKind::kInt, -1},
      {"LONG1 of nothing", "\x8a\x00"s, PickleKind::kInt, 0},
  };
  for (const PickledScalar& row : kPickleRows) {
    const std::string bytes = Pickle(row.body);
    Result<PlainPickle> read = PlainPickle::Parse(bytes);
    ASSERT_TRUE(read.ok()) << row.name << ": " << read.status().message();
    EXPECT_EQ(read->root().kind, row.kind) << row.name;
    EXPECT_EQ(read->root().number, row.number) << row.name;
  }
}

TEST(PlainPickle, ReadsFloatsAndTexts) {
  const std::string half = Pickle("G\x3f\xe0\x00\x00\x00\x00\x00\x00"s);
  Result<PlainPickle> read = PlainPickle::Parse(half);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->root().real, 0.5);
  for (const std::string& bytes : {Pickle("X\x02\x00\x00\x00hi"s), Pickle("\x8c\x02hi")}) {
    read = PlainPickle::Parse(bytes);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->root().text, "hi");
  }
}

TEST(PlainPickle, ReadsWhatIsNamedAgain) {
  // {"a": [1, 2], "b": (1,), "c": the list again}
  const std::string bytes = Pickle(
      "}(\x8c\x01"
      "a]q\x01(K\x01K\x02"
      "e\x8c\x01"
      "bK\x01\x85\x8c\x01"
      "ch\x01u");
  Result<PlainPickle> read = PlainPickle::Parse(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const PlainPickle::Value& list = read->Get(read->root(), "a");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(read->At(list.items[1]).number, 2);
  EXPECT_EQ(read->Get(read->root(), "b").items.size(), 1U);
  EXPECT_EQ(&read->Get(read->root(), "c"), &list);
  EXPECT_EQ(read->Get(read->root(), "d").kind, PickleKind::kNone);
  EXPECT_EQ(read->Get(list, "a").kind, PickleKind::kNone) << "a list has no keys";
}

struct RefusedPickle {
  const char* name;
  std::string bytes;
};

TEST(PlainPickle, RefusesWhateverBuildsMoreThanValues) {
  const RefusedPickle kPickleRows[] = {
      {"GLOBAL and REDUCE", Pickle("cos\nsystem\n\x8c\x02id\x85R")},
      {"STACK_GLOBAL", Pickle("\x8c\x02os\x8c\x06system\x93")},
      {"INST", Pickle("(ios\nsystem\n")},
      {"BUILD", Pickle("}}b")},
      {"NEWOBJ", Pickle("})\x81")},
      {"PERSID", Pickle("P1\n")},
      {"BINPERSID", Pickle("K\x01Q")},
      {"EXT1", Pickle("\x82\x01")},
      {"no end", "\x80\x02N"},
      {"nothing", ""},
      {"nothing on the stack", Pickle("")},
      {"two values", Pickle("NN")},
      {"a mark alone", Pickle("(")},
      {"a mark in a tuple", Pickle("((\x85")},
      {"an unknown protocol", "\x80\x06N."},
      {"a text longer than the pickle", Pickle("X\xff\xff\xff\x7fhi")},
      {"an int of 9 bytes", Pickle("\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01")},
      {"a value that was not named", Pickle("h\x05")},
      {"a key without a value", Pickle("}(K\x01u")},
      {"items without a mark", Pickle("]K\x01"
                                      "e")},
      {"an item in a dict", Pickle("}K\x01"
                                   "a")},
  };
  for (const RefusedPickle& row : kPickleRows)
    EXPECT_FALSE(PlainPickle::Parse(row.bytes).ok()) << row.name;
}

TEST(PlainPickle, RefusesMoreThanItsLimit) {
  EXPECT_TRUE(PlainPickle::Parse(Pickle("(" + std::string(1000, 'N') + "t")).ok());
  EXPECT_FALSE(
      PlainPickle::Parse(Pickle("(" + std::string(PlainPickle::kMostItems, 'N') + "t")).ok());
  EXPECT_FALSE(
      PlainPickle::Parse(Pickle("(" + std::string(PlainPickle::kMostValues, ']') + "t")).ok());
}

// It is dropped as every other one.
TEST(PlainPickle, AListMayContainItself) {
  const std::string bytes = Pickle(
      "]q\x01h\x01"
      "a");
  Result<PlainPickle> read = PlainPickle::Parse(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(&read->At(read->root().items[0]), &read->root());
}

}  // namespace
}  // namespace hvd
