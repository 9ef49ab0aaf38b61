#include "runtime/net/fields.h"

#include <gtest/gtest.h>

#include "runtime/base/text/hex_text.h"

namespace hvd {

struct FieldsInner {
  uint16_t number = 0;
  bool flag = false;
};
struct FieldsOuter {
  std::string text, cut;
  std::vector<uint32_t> numbers;
  std::vector<FieldsInner> inner;
  std::vector<std::string> few;
};
struct FieldsNone {};
struct FieldsTail {
  std::string name;
  MessageBytes tail;
};

void Fields(auto& f, MaybeConst<FieldsInner> auto& m) { f(m.number, m.flag); }
void Fields(auto& f, MaybeConst<FieldsOuter> auto& m) {
  f(m.text, CutText(m.cut, 2), m.numbers, m.inner, CutTo<uint8_t>(m.few, 1));
}
void Fields(auto&, MaybeConst<FieldsNone> auto&) {}
void Fields(auto& f, MaybeConst<FieldsTail> auto& m) {
  f(m.name);
  f.Tail(m.tail);
}

namespace {

using Either = std::variant<FieldsNone, FieldsOuter>;
using PerhapsTail = std::variant<FieldsNone, FieldsTail>;

const Either kOuter = FieldsOuter{"ab", "cdef", {1, 2}, {{3, true}}, {"g", "h"}};

Result<Either> Decode(std::string_view bytes) { return DecodeMessage<Either>(bytes, "thing"); }

TEST(Fields, AreWrittenInTheirOrderAndCut) {
  EXPECT_EQ(HexOf(EncodeMessage(Either(FieldsNone{}))), "00");
  EXPECT_EQ(HexOf(EncodeMessage(kOuter)),
            "01"
            "020000006162"
            "020000006364"
            "020000000100000002000000"
            "01000000030001"
            "010100000067");
}

TEST(Fields, AreReadAsTheyWereWritten) {
  const std::string bytes = EncodeMessage(kOuter);
  Result<Either> read = Decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(EncodeMessage(*read), bytes);
  const auto& outer = std::get<FieldsOuter>(*read);
  EXPECT_EQ(outer.numbers, (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(outer.inner.at(0).flag);
}

TEST(Fields, WhatIsNoMessageIsRefusedInWords) {
  const std::string bytes = EncodeMessage(kOuter);
  EXPECT_EQ(Decode("").status().message(), "an empty thing");
  EXPECT_EQ(Decode("\2").status().message(), "a thing of the unknown type 2");
  EXPECT_EQ(Decode(bytes + "x").status().message(), "a thing of a wrong length");
  for (size_t length = 1; length < bytes.size(); ++length)
    EXPECT_EQ(Decode(bytes.substr(0, length)).status().message(), "a thing of a wrong length");
}

// The counts of both lists say 4,294,967,295.
TEST(Fields, ACountIsNotBelieved) {
  for (size_t at : {13, 25}) {
    std::string bytes = EncodeMessage(kOuter);
    bytes.replace(at, 4, 4, '\xff');
    EXPECT_FALSE(Decode(bytes).ok()) << at;
    FieldReader reader(std::string_view(bytes).substr(1));
    FieldsOuter outer;
    Fields(reader, outer);
    EXPECT_LE(outer.numbers.capacity() + outer.inner.capacity(), bytes.size()) << at;
  }
}

TEST(Fields, AnyByteButZeroIsTrue) {
  std::string bytes = EncodeMessage(kOuter);
  bytes[bytes.size() - 7] = '\x40';
  EXPECT_TRUE(std::get<FieldsOuter>(*Decode(bytes)).inner.at(0).flag);
}

// With its bytes, as a sender puts them together.
MessageBytes Encode(FieldsTail message) {
  message.tail.Push(EncodeMessage(PerhapsTail(message)));
  return std::move(message.tail);
}

Result<PerhapsTail> DecodeTail(MessageBytes bytes) {
  return DecodeWithTail<PerhapsTail>(std::move(bytes), "thing");
}

TEST(FieldsTails, LieBehindTheirLengthAtAMultipleOf16) {
  EXPECT_EQ(HexOf(Encode({"ab", "tail"}).view()),
            "01"
            "020000006162"
            "04000000"
            "0000000000"
            "7461696c");
}

TEST(FieldsTails, AreReadWhereTheyAre) {
  for (size_t length : {0, 1, 4, 5, 16, 100}) {
    const std::string name(length, 'n'), tail(3 * length, 't');
    MessageBytes bytes = Encode({name, tail});
    const char* const begin = bytes.view().data();
    const size_t size = bytes.size();
    Result<PerhapsTail> read = DecodeTail(std::move(bytes));
    ASSERT_TRUE(read.ok()) << read.status().message();
    const auto& message = std::get<FieldsTail>(*read);
    EXPECT_EQ(message.name, name);
    EXPECT_EQ(message.tail, tail);
    if (size < sizeof(std::string)) continue;  // a short string moves its bytes
    EXPECT_EQ(message.tail.view().data(), begin + size - tail.size());
    EXPECT_EQ((size - tail.size()) % 16, 0u);
  }
}

TEST(FieldsTails, OfAnotherLengthOrPaddingAreRefused) {
  const std::string whole(Encode({"ab", "tail"}).view());
  for (size_t length = 1; length < whole.size(); ++length)
    EXPECT_FALSE(DecodeTail(whole.substr(0, length)).ok()) << length;
  EXPECT_FALSE(DecodeTail(whole + "x").ok());
  std::string padded = whole;
  padded[12] = 'x';
  EXPECT_FALSE(DecodeTail(padded).ok());
  EXPECT_FALSE(DecodeMessage<PerhapsTail>(whole, "thing").ok()) << "read as one without a tail";
}

}  // namespace
}  // namespace hvd
