#include "runtime/core/request/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hvd {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> Written(const OutgoingRequest& request) {
  std::vector<std::byte> bytes(BytesOf(request));
  Write(request, bytes);
  return bytes;
}

BufferDescriptor DescriptorOf(uint64_t word, const std::string& payload) {
  BufferDescriptor descriptor;
  descriptor.words = {word, word + 1, word + 2, word + 3};
  descriptor.payload = Bytes(payload);
  return descriptor;
}

TEST(Message, ATinyPayloadFillsOneCacheLineWithTheFrame) {
  const std::string payload(32, 'p');
  const BufferDescriptor descriptor = DescriptorOf(1, payload);
  const std::vector<std::byte> bytes = Written({7, "", &descriptor, {}});
  EXPECT_EQ(bytes.size(), 48u);
  IncomingRequest request;
  ASSERT_TRUE(Read(bytes, &request).ok());
  BufferDescriptor first;
  RecordVector<BufferDescriptor> more;
  ReadDescriptors(request, &first, &more);
  EXPECT_EQ(Text(first.payload), payload);
  EXPECT_EQ(first.payload.data(), reinterpret_cast<const std::byte*>(first.words.data()));
  EXPECT_EQ(request.head.name_id, 7u);
}

TEST(Message, CarriesDetailOffersAndPayloads) {
  for (size_t size : {0, 1, 31, 33, 1000}) {
    const std::string payload(size, 'x'), second = "second", detail = "eleven byte";
    const BufferDescriptor first = DescriptorOf(10, payload);
    const BufferDescriptor more[] = {DescriptorOf(20, second), DescriptorOf(30, ""),
                                     DescriptorOf(40, payload)};
    const std::vector<std::byte> bytes = Written({9, detail, &first, more});
    IncomingRequest request;
    ASSERT_TRUE(Read(bytes, &request).ok()) << size;
    EXPECT_EQ(request.detail, detail);
    BufferDescriptor read;
    RecordVector<BufferDescriptor> rest;
    ReadDescriptors(request, &read, &rest);
    ASSERT_EQ(rest.size(), 3u);
    EXPECT_EQ(Text(read.payload), payload);
    EXPECT_EQ(Text(rest[0].payload), second);
    EXPECT_EQ(Text(rest[1].payload), "");
    EXPECT_EQ(Text(rest[2].payload), payload);
    EXPECT_EQ(rest[1].words, more[1].words);
    if (size == 0) {
      EXPECT_EQ(read.words, first.words);
    }
  }
}

TEST(Message, EveryPieceOfAMessageIsRefused) {
  const std::string payload(40, 'x'), detail = "detail";
  const BufferDescriptor first = DescriptorOf(1, payload);
  const BufferDescriptor more[] = {DescriptorOf(2, payload)};
  const std::vector<std::byte> bytes = Written({9, detail, &first, more});
  IncomingRequest request;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Read(std::span(bytes).first(length), &request).ok()) << length;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Read(longer, &request).ok());
}

TEST(Assembly, PutsPiecesTogetherInOrder) {
  std::vector<std::byte> message(1000);
  for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i * 7);
  Assembly assembly;
  for (int round = 0; round < 2; ++round) {
    for (size_t at = 0; at < message.size(); at += 300) {
      EXPECT_FALSE(assembly.complete());
      MessageHead head{};
      head.words[0] = message.size();
      head.words[1] = at;
      const size_t bytes = std::min<size_t>(300, message.size() - at);
      ASSERT_TRUE(assembly.Add(head, std::span(message).subspan(at, bytes)).ok());
    }
    ASSERT_TRUE(assembly.complete());
    EXPECT_TRUE(std::equal(message.begin(), message.end(), assembly.bytes().begin()));
    assembly.Clear();
  }
}

TEST(Assembly, RefusesWhatDoesNotFollow) {
  const std::vector<std::byte> piece(10);
  auto head = [](uint64_t total, uint64_t at) {
    MessageHead made{};
    made.words[0] = total;
    made.words[1] = at;
    return made;
  };
  EXPECT_FALSE(Assembly().Add(head(100, 10), piece).ok()) << "not the first";
  EXPECT_FALSE(Assembly().Add(head(5, 0), piece).ok()) << "more than there is";
  EXPECT_FALSE(Assembly().Add(head(1ull << 60, 0), piece).ok()) << "too large";
  EXPECT_FALSE(Assembly().Add(head(100, 0), {}).ok()) << "nothing";
  Assembly assembly;
  ASSERT_TRUE(assembly.Add(head(100, 0), piece).ok());
  EXPECT_FALSE(assembly.Add(head(90, 10), piece).ok()) << "of another message";
  EXPECT_TRUE(assembly.Add(head(10, 0), piece).ok()) << "the sender gave up and began anew";
  EXPECT_TRUE(assembly.complete());
}

}  // namespace
}  // namespace hvd
