#include "runtime/base/bytes.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(Bytes, FieldsComeBackInOrder) {
  ByteWriter writer;
  writer.Put(uint8_t{7}).Put(int64_t{-1}).PutString("name").PutString("").Put(uint32_t{0xdeadbeef});
  std::string bytes = writer.Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Get<uint8_t>(), 7);
  EXPECT_EQ(reader.Get<int64_t>(), -1);
  EXPECT_EQ(reader.GetString(), "name");
  EXPECT_EQ(reader.GetString(), "");
  EXPECT_FALSE(reader.AtEnd());
  EXPECT_EQ(reader.Get<uint32_t>(), 0xdeadbeefu);
  EXPECT_TRUE(reader.AtEnd());
}

TEST(Bytes, IntegersAreLittleEndian) {
  ByteWriter writer;
  writer.Put(uint32_t{0x01020304});
  EXPECT_EQ(writer.Take(), std::string("\x04\x03\x02\x01"));
}

TEST(Bytes, AfterTheFirstFieldThatDoesNotFitEverythingIsZero) {
  std::string bytes("\x01\x02\x03", 3);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Get<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Get<uint8_t>(), 0) << "although a byte is there";
  EXPECT_EQ(reader.GetString(), "");
  EXPECT_EQ(reader.Rest(), "");
  EXPECT_FALSE(reader.AtEnd());
}

TEST(Bytes, ALengthBeyondTheEndIsNotFollowed) {
  ByteWriter writer;
  writer.Put(uint32_t{0xffffffff}).Put(uint8_t{1});
  std::string bytes = writer.Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.GetString(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, RestTakesWhatIsLeft) {
  ByteReader reader("abc");
  EXPECT_EQ(reader.GetBytes(1), "a");
  EXPECT_EQ(reader.Rest(), "bc");
  EXPECT_TRUE(reader.AtEnd());
}

}  // namespace
}  // namespace hvd
