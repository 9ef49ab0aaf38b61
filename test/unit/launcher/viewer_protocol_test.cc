#include "launcher/detached/viewer_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {
namespace {

using ::testing::HasSubstr;

std::string WholeOutput(ViewerMessages& messages) {
  std::string bytes = messages.Next(JobThere{"train-1", "0123456789abcdef", {7, 1}});
  bytes += messages.Next(OutputPiece{0, {7, 1}, std::string("a\nb\0c", 5)});
  bytes += messages.Next(OutputPiece{3, {100, 9}, "\n"});
  return bytes + messages.Next(JobOver{-3, "a reason"});
}

// What comes out of bytes that arrive in pieces of this size, in order.
template <typename Message>
std::vector<Message> ReadInPieces(std::string_view bytes, size_t size) {
  ViewerReader<Message> reader;
  std::vector<Message> messages;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    reader.Append(bytes.substr(0, size));
    for (;;) {
      auto message = reader.Next();
      EXPECT_TRUE(message.ok()) << message.status().message();
      if (!message.ok() || !*message) break;
      messages.push_back(std::move(**message));
    }
  }
  return messages;
}

TEST(ViewerProtocol, MessagesToTheViewerComeThroughInAnyPieces) {
  ViewerMessages writer;
  const std::string bytes = WholeOutput(writer);
  for (size_t size = 1; size <= bytes.size(); ++size) {
    const auto messages = ReadInPieces<ToViewer>(bytes, size);
    ASSERT_EQ(messages.size(), 4u) << size;
    const auto& there = std::get<JobThere>(messages[0]);
    EXPECT_EQ(there.name, "train-1");
    EXPECT_EQ(there.id, "0123456789abcdef");
    EXPECT_EQ(there.shown, (LogPlace{7, 1}));
    const auto& piece = std::get<OutputPiece>(messages[1]);
    EXPECT_EQ(piece.text, std::string("a\nb\0c", 5));
    EXPECT_EQ(piece.lost_lines, 0u);
    EXPECT_EQ(EndOf(piece), (LogPlace{12, 2}));
    EXPECT_EQ(std::get<OutputPiece>(messages[2]).lost_lines, 3u);
    EXPECT_EQ(std::get<JobOver>(messages[3]).exit_code, -3);
    EXPECT_EQ(std::get<JobOver>(messages[3]).reason, "a reason");
  }
}

TEST(ViewerProtocol, WordsFromTheViewerComeThroughInAnyPieces) {
  ViewerMessages writer;
  std::string bytes = writer.Next(ShowFrom{{1, 2}});
  bytes += writer.Next(ShownUpTo{{30, 4}});
  bytes += writer.Next(FromViewer(StopTheJob{}));
  for (size_t size = 1; size <= bytes.size(); ++size) {
    const auto words = ReadInPieces<FromViewer>(bytes, size);
    ASSERT_EQ(words.size(), 3u);
    EXPECT_EQ(std::get<ShowFrom>(words[0]).place, (LogPlace{1, 2}));
    EXPECT_EQ(std::get<ShownUpTo>(words[1]).place, (LogPlace{30, 4}));
    EXPECT_TRUE(std::holds_alternative<StopTheJob>(words[2]));
  }
}

TEST(ViewerProtocol, TheLongestPieceFitsAFrame) {
  ViewerMessages writer;
  const auto messages = ReadInPieces<ToViewer>(
      writer.Next(OutputPiece{1, {2, 3}, std::string(kMostPiece, 'x')}), 1000);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(std::get<OutputPiece>(messages[0]).text.size(), kMostPiece);
}

std::string Refused(std::string_view bytes) {
  ViewerReader<ToViewer> reader;
  reader.Append(bytes);
  for (;;) {
    auto message = reader.Next();
    if (!message.ok()) return message.status().message();
    if (!*message) return "";
  }
}

TEST(ViewerProtocol, AMessageThatIsMissingIsNoticed) {
  ViewerMessages writer;
  const std::string first = writer.Next(JobOver{}), second = writer.Next(JobOver{}),
                    third = writer.Next(JobOver{});
  EXPECT_EQ(Refused(first + second), "");
  EXPECT_THAT(Refused(first + third), HasSubstr("missing"));
  EXPECT_THAT(Refused(first + first), HasSubstr("missing"));
  EXPECT_THAT(Refused(second), HasSubstr("missing"));
}

TEST(ViewerProtocol, OtherBytesAreRefused) {
  EXPECT_THAT(Refused(std::string(100, 'x')), HasSubstr("no frame"));
  ViewerMessages writer;
  // No message is of so high a type, and none of the viewer's is of this length.
  const std::string word = writer.Next(FromViewer(StopTheJob{}));
  EXPECT_THAT(Refused(word.substr(0, word.size() - 1) + '\x09'), HasSubstr("unknown type"));
  EXPECT_THAT(Refused(word), HasSubstr("wrong length"));
}

TEST(ViewerProtocol, APieceFollowsTheOneBefore) {
  const LogPlace end{100, 5};
  EXPECT_TRUE(CheckPiece({0, {100, 5}, "x"}, end).ok());
  EXPECT_TRUE(CheckPiece({2, {150, 7}, "x"}, end).ok()) << "lines are missing, and counted";
  EXPECT_FALSE(CheckPiece({0, {150, 7}, "x"}, end).ok()) << "they are not counted";
  EXPECT_FALSE(CheckPiece({0, {99, 5}, "x"}, end).ok()) << "a byte comes twice";
  EXPECT_FALSE(CheckPiece({2, {99, 5}, "x"}, end).ok());
  EXPECT_FALSE(CheckPiece({0, {100, 6}, "x"}, end).ok());
  EXPECT_FALSE(CheckPiece({2, {std::numeric_limits<uint64_t>::max(), 5}, "x"}, end).ok());
}

}  // namespace
}  // namespace hvd
