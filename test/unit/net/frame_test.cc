#include "runtime/net/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace hvd {
namespace {

using ::testing::HasSubstr;

std::string OneFrame(const std::string& payload) {
  FrameHeader header;
  header.type = FrameType::kControl;
  header.job = 7;
  header.generation = 3;
  header.sequence = 42;
  header.ack = 41;
  std::string bytes;
  AppendFrame(bytes, header, payload);
  return bytes;
}

TEST(Frame, ArrivesAsSentWhateverThePieces) {
  std::string bytes = OneFrame("hello");
  ASSERT_EQ(bytes.size(), kFrameHeaderBytes + 5);
  FrameReader reader;
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    reader.Append(bytes.substr(i, 1));
    Result<std::optional<Frame>> none = reader.Next();
    ASSERT_TRUE(none.ok());
    ASSERT_FALSE(none->has_value()) << "after byte " << i;
  }
  reader.Append(bytes.substr(bytes.size() - 1));
  Result<std::optional<Frame>> frame = reader.Next();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ((*frame)->payload, "hello");
  EXPECT_EQ((*frame)->header.job, 7u);
  EXPECT_EQ((*frame)->header.generation, 3u);
  EXPECT_EQ((*frame)->header.sequence, 42u);
  EXPECT_EQ((*frame)->header.ack, 41u);
}

TEST(Frame, LengthBeyondTheLimitIsAnErrorBeforeAnythingIsGathered) {
  std::string bytes = OneFrame("");
  bytes[2] = 1;  // payload length 65,536
  FrameReader reader;
  reader.Append(bytes);
  Result<std::optional<Frame>> frame = reader.Next();
  ASSERT_FALSE(frame.ok());
  EXPECT_THAT(frame.status().message(), HasSubstr("65536 payload bytes"));
}

TEST(Frame, TheLargestPayloadArrivesAndOneByteMoreDoesNot) {
  const std::string largest(kMaxFramePayload, 'x');
  for (const bool more : {false, true}) {
    FrameReader reader;
    reader.Append(OneFrame(more ? largest + 'x' : largest));
    Result<std::optional<Frame>> frame = reader.Next();
    EXPECT_EQ(frame.ok(), !more);
    if (frame.ok()) {
      EXPECT_EQ((*frame)->payload, largest);
    }
  }
}

TEST(Frame, MessagesHaveANumberAndNothingElseHas) {
  for (const auto& [type, sequence] :
       {std::pair(FrameType::kControl, 0), std::pair(FrameType::kLog, 0),
        std::pair(FrameType::kHello, 1), std::pair(FrameType::kCredit, 1)}) {
    FrameHeader header;
    header.type = type;
    header.sequence = static_cast<uint64_t>(sequence);
    std::string bytes;
    AppendFrame(bytes, header, "");
    FrameReader reader;
    reader.Append(bytes);
    EXPECT_FALSE(reader.Next().ok()) << static_cast<int>(type) << " numbered " << sequence;
  }
}

TEST(Frame, EveryWrongHeaderByteIsAnErrorOrAnotherFrameButNeverACrash) {
  std::string good = OneFrame("payload");
  for (size_t at = 0; at < good.size(); ++at) {
    for (int value : {0, 1, 127, 255}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      FrameReader reader;
      reader.Append(bytes);
      if (Result<std::optional<Frame>> frame = reader.Next(); !frame.ok()) {
        EXPECT_FALSE(frame.status().message().empty());
      }
    }
  }
}

TEST(Frame, RandomBytesAreRefused) {
  std::mt19937 random(20240501);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes(kFrameHeaderBytes + round % 100, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    FrameReader reader;
    reader.Append(bytes);
    EXPECT_FALSE(reader.Next().ok());
  }
}

}  // namespace
}  // namespace hvd
