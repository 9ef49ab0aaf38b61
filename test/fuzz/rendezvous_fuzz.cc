// Any bytes as an answer of a key-value server, and as a record in it: refused, or taken and
// written back the same. Records whose form is right and whose fields are arbitrary get as far as
// the part of a host; that has exactly the ranks that wait.
#include "launcher/external/adopt/http_store.h"
#include "launcher/external/adopt/rendezvous_records.h"
#include "runtime/net/layout.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

const std::string kHostA(16, 'a'), kHostB(16, 'b'), kStranger(16, 'c');
const std::string kKey(64, '0');

// Small numbers, and those at the ends of their types.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Number() {
    constexpr uint64_t kEnds[] = {UINT64_MAX,    UINT64_MAX - 1,     kLastMetGeneration,
                                  UINT32_MAX,    UINT32_MAX - 1,     uint64_t{UINT32_MAX} + 1,
                                  kMaxRanks - 1, uint64_t{kMaxRanks}};
    const uint8_t byte = Byte();
    return byte < 0xf8 ? byte % 8 : kEnds[byte - 0xf8];
  }
  std::string Token() {
    const std::string tokens[] = {kHostA, kHostB, kStranger, "c"};
    return tokens[Byte() % 4];
  }
  std::string Key() { return Byte() % 8 == 0 ? "short" : kKey; }
  size_t Count() { return Byte() % 6; }

 private:
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string_view bytes_;
};

// A count in it may be a lie.
std::string WorldText(std::string_view bytes) {
  Fields fields(bytes);
  std::string text = "hvd-world-2 " + std::to_string(fields.Number()) + " " + fields.Key();
  for (int list = 0; list < 2; ++list) {
    const size_t count = fields.Count();
    text += " " + std::to_string(fields.Count() == 5 ? fields.Number() : count);
    for (size_t i = 0; i < count; ++i) {
      if (list == 0) text += " " + fields.Token();
      for (int n = 0; list == 1 && n < 4; ++n) text += " " + std::to_string(fields.Number());
    }
  }
  return text;
}

std::vector<RankEntry> RankEntries(std::string_view bytes) {
  Fields fields(bytes);
  std::vector<RankEntry> notes;
  for (size_t left = 1 + fields.Count(); left > 0; --left) {
    std::string text = "hvd-rank-1 " + fields.Token() + " " + std::to_string(fields.Number()) +
                       " " + std::to_string(fields.Number());
    if (auto note = DecodeRankEntry(text); note.ok()) notes.push_back(*note);
  }
  return notes;
}

void CheckWorld(const WorldRecord& world, uint32_t size) {
  Must(EncodeRecord(world).size() <= MostBytesOfWorldRecord(size));
  Must(DecodeWorldRecord(EncodeRecord(world), size).value() == world);
  Must(PlacesOf(world.layout, size).ok());
  for (const std::string& token : {kHostA, kHostB, kStranger}) {
    for (uint32_t first = 0; first < size; ++first) {
      for (uint32_t last = first; last < size; ++last) {
        WaitingHost here{{}, size, world.generation - 1};
        for (uint32_t rank = first; rank <= last; ++rank) here.ranks.push_back(rank);
        auto part = PartOfWaiting(world, here, token);
        if (part.ok()) Must(part->slots.size() == here.ranks.size() && part->size == size);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WorldRecord world{3, kKey, {kHostA, kHostB}, {{0, 0, 2}, {1, 0, 1}}};
  const std::string beyond =
      "hvd-world-2 3 " + kKey + " 3 " + kHostA + " " + kStranger + " " + kHostB + " 1 0 0 1 2";
  WriteSeeds(
      *argc, *argv,
      {EncodeRecord(RankEntry{kHostA, 1, 2}), EncodeRecord(world), EncodeRefusal("no"), beyond,
       "hvd-world-2 3 " + kKey + " 4294967295 " + kHostA,
       std::string("\1\1\2\2\0\1\2\1\0\0\1\2", 12),
       std::string("\377\1\3\3\0\1\2\5\5\377\370\371\372\373", 14),
       "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 404 Not Found\r\n\r\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto reply = ParseHttpReply(bytes); reply.ok()) Must(reply->body.size() < size);
  if (auto note = DecodeRankEntry(bytes); note.ok())
    Must(DecodeRankEntry(EncodeRecord(*note)).value() == *note);
  if (auto reason = DecodeRefusal(bytes)) Must(reason->size() <= size * 4 + 64);
  for (const std::string& text : {std::string(bytes), WorldText(bytes)}) {
    for (uint32_t ranks = 1; ranks < 8; ++ranks) {
      if (auto note = DecodeWorldRecord(text, ranks); note.ok()) CheckWorld(*note, ranks);
    }
  }
  const std::vector<RankEntry> notes = RankEntries(bytes);
  if (auto world = WorldOfRecords(notes, kKey); world.ok())
    CheckWorld(*world, static_cast<uint32_t>(notes.size()));
  return 0;
}
