#include "timeline/convert/perfetto_export.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hvd {
namespace {

// A message: fields by number. Strict: what does not fit fails the test.
class Message {
 public:
  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t key = Varint(&bytes);
      const auto field = static_cast<uint32_t>(key >> 3U);
      switch (key & 7U) {
        case 0: numbers_[field].push_back(Varint(&bytes)); break;
        case 1: numbers_[field].push_back(Fixed(&bytes)); break;
        case 2: texts_[field].push_back(std::string(Take(&bytes, Varint(&bytes)))); break;
        default: ADD_FAILURE() << "type " << (key & 7U); return;
      }
    }
  }
  uint64_t Number(uint32_t field) const {
    const auto found = numbers_.find(field);
    return found == numbers_.end() ? 0 : found->second.at(0);
  }
  std::vector<std::string> Texts(uint32_t field) const {
    const auto found = texts_.find(field);
    return found == texts_.end() ? std::vector<std::string>() : found->second;
  }
  std::string Text(uint32_t field) const { return Texts(field).empty() ? "" : Texts(field)[0]; }
  bool Has(uint32_t field) const { return numbers_.count(field) + texts_.count(field) > 0; }

 private:
  static std::string_view Take(std::string_view* bytes, size_t count) {
    EXPECT_LE(count, bytes->size());
    const std::string_view taken = bytes->substr(0, count);
    bytes->remove_prefix(taken.size());
    return taken;
  }
  static uint64_t Fixed(std::string_view* bytes) {
    uint64_t value = 0;
    const std::string_view taken = Take(bytes, sizeof value);
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  static uint64_t Varint(std::string_view* bytes) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Take(bytes, 1).at(0));
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::map<uint32_t, std::vector<uint64_t>> numbers_;
  std::map<uint32_t, std::vector<std::string>> texts_;
};

std::vector<Message> Packets(const std::string& events) {
  auto source = TraceSource::OfText("a.json", events);
  EXPECT_TRUE(source.ok()) << source.status().message();
  std::string out;
  PerfettoExport perfetto((*source)->origin(), &out);
  while (const TraceEvent* event = (*source)->Next()) perfetto.Add(*event);
  std::vector<Message> packets;
  for (const std::string& packet : Message(out).Texts(1)) packets.emplace_back(packet);
  return packets;
}

TEST(PerfettoExportTest, WritesTracksNamesAndTimes) {
  const std::vector<Message> packets =
      Packets(R"([{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0")"
              R"(,"start_time_since_epoch_in_micros":7}},)"
              R"({"ph":"M","name":"thread_name","pid":0,"tid":3,"args":{"name":"a \"tensor\""}},)"
              R"({"ph":"B","name":"ALLREDUCE","ts":1.5,"pid":0,"tid":3},)"
              R"({"ph":"E","ts":2.25,"pid":0,"tid":3,"args":{"dtype":"float32","bytes":48}},)"
              R"({"ph":"B","name":"ALLREDUCE","ts":3,"pid":0,"tid":3}])");
  EXPECT_EQ(Message(packets[0].Text(6)).Texts(1).size(), 2U);  // two clocks
  std::map<uint64_t, std::string> tracks;
  std::vector<Message> events;
  std::map<uint64_t, std::string> names;
  for (const Message& packet : packets) {
    if (packet.Has(60)) {
      const Message track(packet.Text(60));
      tracks[track.Number(1)] = track.Text(2);
    }
    for (const std::string& name : Message(packet.Text(12)).Texts(2))
      names[Message(name).Number(1)] = Message(name).Text(2);
    if (packet.Has(11)) events.push_back(packet);
  }
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].Number(8), 1500U);
  EXPECT_EQ(events[0].Number(13), 3U);
  EXPECT_EQ(events[1].Number(8), 2250U);
  EXPECT_EQ(events[1].Number(13), 2U);
  EXPECT_FALSE(events[2].Has(12));  // the name is known already
  const Message begin(events[0].Text(11)), end(events[1].Text(11));
  EXPECT_EQ(begin.Number(9), 1U);
  EXPECT_EQ(end.Number(9), 2U);
  EXPECT_EQ(names[begin.Number(10)], "ALLREDUCE");
  EXPECT_EQ(tracks[begin.Number(11)], "a \"tensor\"");
  EXPECT_EQ(end.Texts(4).size(), 2U);
  EXPECT_EQ(Message(end.Texts(4)[1]).Number(4), 48U);
  const Message interned(events[1].Text(12));
  EXPECT_EQ(Message(interned.Texts(3)[0]).Text(2), "dtype");
  EXPECT_EQ(Message(interned.Text(29)).Text(2), "float32");
}

// An integer beyond 64 bits is as near as a double comes, not 0.
TEST(PerfettoExportTest, NumbersKeepTheirValue) {
  const std::vector<Message> packets =
      Packets(R"([{"ph":"B","name":"a","ts":1,"pid":0,"tid":0,"args":)"
              R"({"a":9223372036854775807,"b":9223372036854775808,"c":2.5}}])");
  std::vector<Message> annotations;
  for (const Message& packet : packets) {
    for (const std::string& text : Message(packet.Text(11)).Texts(4))
      annotations.emplace_back(text);
  }
  ASSERT_EQ(annotations.size(), 3U);
  EXPECT_EQ(annotations[0].Number(4), 9223372036854775807U);
  EXPECT_FALSE(annotations[1].Has(4));
  EXPECT_EQ(std::bit_cast<double>(annotations[1].Number(5)), 9223372036854775808.0);
  EXPECT_EQ(std::bit_cast<double>(annotations[2].Number(5)), 2.5);
}

TEST(PerfettoExportTest, AnEventWithADurationIsTwo) {
  const std::vector<Message> packets =
      Packets(R"([{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"X","name":"3","ts":1)"
              R"(,"dur":0,"pid":1,"tid":1},)"
              R"({"ph":"C","name":"counter","ts":1,"pid":1,"tid":1}])");
  std::vector<uint64_t> types;
  for (const Message& packet : packets) {
    if (packet.Has(11)) types.push_back(Message(packet.Text(11)).Number(9));
  }
  EXPECT_EQ(types, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(PerfettoExportTest, NamesWithoutEndAreForgottenAndSaidAgain) {
  std::string events = "[";
  for (int i = 0; i < 150'000; ++i)
    events += (i == 0 ? "" : ",") + std::string(R"({"ph":"i","ts":1,"name":"n)") +
              std::to_string(i) + "\"}";
  size_t clears = 0;
  for (const Message& packet : Packets(events + "]"))
    clears += packet.Has(11) && packet.Number(13) == 3;
  EXPECT_EQ(clears, 2U);
}

}  // namespace
}  // namespace hvd
