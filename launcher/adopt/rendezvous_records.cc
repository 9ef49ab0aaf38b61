#include "launcher/adopt/rendezvous_records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr std::string_view kRank = "hvd-rank-1", kWorld = "hvd-world-2",
                           kRefusal = "hvd-no-world-1 ";
constexpr size_t kMaxWord = 128;
constexpr size_t kKeyDigits = 64;
constexpr size_t kMostShown = 1000;  // of a reason

// Words that are separated by one blank each.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view Word() {
    if (at_end_) ok_ = false;
    std::string_view word = text_.substr(0, text_.find(' '));
    at_end_ = word.size() == text_.size();
    text_.remove_prefix(std::min(text_.size(), word.size() + 1));
    if (word.empty() || word.size() > kMaxWord) ok_ = false;
    return word;
  }
  template <typename T>
  T Number() {
    std::string_view word = Word();
    T value = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) ok_ = false;
    return value;
  }
  bool ok() const { return ok_; }
  bool Done() const { return ok_ && at_end_; }

 private:
  std::string_view text_;
  bool ok_ = true, at_end_ = false;
};

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status NoNote(std::string_view what) {
  return InvalidArgument("is no note about a " + std::string(what));
}

bool AllDiffer(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  return std::adjacent_find(words.begin(), words.end()) == words.end();
}

uint32_t CountHosts(const std::vector<RankPlace>& places) {
  uint32_t hosts = 0;
  for (const RankPlace& place : places) hosts = std::max(hosts, place.host + 1);
  return hosts;
}

Status CheckWorld(const WorldRecord& note, uint32_t size) {
  if (note.generation == 0 || note.generation > kLastMetGeneration)
    return InvalidArgument("has a generation that cannot be");
  if (!IsHex(note.data_key, kKeyDigits)) return InvalidArgument("has no key");
  if (!std::all_of(note.tokens.begin(), note.tokens.end(), IsRendezvousName))
    return InvalidArgument("has a host without a token");
  if (!AllDiffer(note.tokens)) return InvalidArgument("has one host twice");
  Result<std::vector<RankPlace>> places = PlacesOf(note.layout, size);
  if (!places.ok()) return InvalidArgument("has " + places.status().message());
  if (uint32_t hosts = CountHosts(*places); hosts != note.tokens.size()) {
    return InvalidArgument("names " + std::to_string(note.tokens.size()) +
                           " hosts for a layout of " + std::to_string(hosts));
  }
  return Status::Ok();
}

}  // namespace

std::string EncodeRecord(const RankEntry& note) {
  return std::string(kRank) + " " + note.token + " " + std::to_string(note.local_rank) + " " +
         std::to_string(note.last_generation);
}

std::string EncodeRecord(const WorldRecord& note) {
  std::string text = std::string(kWorld) + " " + std::to_string(note.generation) + " " +
                     note.data_key + " " + std::to_string(note.tokens.size());
  for (const std::string& token : note.tokens) text += " " + token;
  text += " " + std::to_string(note.layout.size());
  for (const RankRun& run : note.layout) {
    for (uint32_t number : run.Numbers()) text += " " + std::to_string(number);
  }
  return text;
}

Result<RankEntry> DecodeRankEntry(std::string_view text) {
  Words words(text);
  bool known = words.Word() == kRank;
  RankEntry note;
  note.token = words.Word();
  note.local_rank = words.Number<uint32_t>();
  note.last_generation = words.Number<uint64_t>();
  if (!known || !words.Done() || !IsRendezvousName(note.token)) return NoNote("rank");
  if (note.local_rank >= kMaxRanks) return InvalidArgument("has a local rank that cannot be");
  if (note.last_generation >= kLastMetGeneration)
    return InvalidArgument("has a generation that cannot be");
  return note;
}

Result<WorldRecord> DecodeWorldRecord(std::string_view text, uint32_t size) {
  Words words(text);
  bool known = words.Word() == kWorld;
  WorldRecord note;
  note.generation = words.Number<uint64_t>();
  note.data_key = words.Word();
  // A host has a rank at least, and so has a run.
  auto hosts = words.Number<uint32_t>();
  if (!known || !words.ok()) return NoNote("world");
  if (hosts > size) {
    return InvalidArgument("names " + std::to_string(hosts) + " hosts for a world of " +
                           std::to_string(size) + " ranks");
  }
  for (; hosts > 0 && words.ok(); --hosts) note.tokens.emplace_back(words.Word());
  auto runs = words.Number<uint32_t>();
  if (!words.ok() || runs > size) return NoNote("world");
  for (; runs > 0 && words.ok(); --runs) {
    std::array<uint32_t, 4> numbers{};
    for (uint32_t& number : numbers) number = words.Number<uint32_t>();
    note.layout.push_back(RankRun::Of(numbers));
  }
  if (!words.Done()) return NoNote("world");
  if (Status good = CheckWorld(note, size); !good.ok()) return good;
  return note;
}

size_t MostBytesOfWorldRecord(uint32_t size) {
  constexpr size_t kHead = 256, kToken = 17, kRun = size_t{4} * 11;
  return kHead + size_t{size} * (kToken + kRun);
}

std::string EncodeRefusal(const std::string& reason) {
  return std::string(kRefusal) + Printable(reason, kMostShown);
}

std::optional<std::string> DecodeRefusal(std::string_view text) {
  if (!text.starts_with(kRefusal)) return std::nullopt;
  return Printable(text.substr(kRefusal.size()), kMostShown);
}

bool IsRendezvousName(std::string_view text) { return IsHex(text, 16); }

Result<WorldRecord> WorldOfRecords(const std::vector<RankEntry>& notes, std::string data_key) {
  WorldRecord world;
  world.data_key = std::move(data_key);
  std::vector<RankPlace> places;
  for (const RankEntry& note : notes) {
    auto host = std::find(world.tokens.begin(), world.tokens.end(), note.token);
    places.push_back({static_cast<uint32_t>(host - world.tokens.begin()), note.local_rank});
    if (host == world.tokens.end()) world.tokens.push_back(note.token);
    world.generation = std::max(world.generation, note.last_generation + 1);
  }
  world.layout = RunsOf(places);
  Result<std::vector<RankPlace>> good = PlacesOf(world.layout, static_cast<uint32_t>(notes.size()));
  if (!good.ok()) return InvalidArgument("the launcher gave its ranks " + good.status().message());
  return world;
}

HostWorld PartOfHost(const std::vector<RankPlace>& places, uint32_t host) {
  HostWorld world;
  world.size = static_cast<uint32_t>(places.size());
  world.layout = RunsOf(places);
  std::vector<uint32_t> local_sizes;
  for (const RankPlace& place : places) {
    local_sizes.resize(std::max<size_t>(local_sizes.size(), place.host + 1));
    ++local_sizes[place.host];
  }
  if (host >= local_sizes.size()) return world;
  world.homogeneous = std::count(local_sizes.begin(), local_sizes.end(), local_sizes.front()) ==
                      static_cast<std::ptrdiff_t>(local_sizes.size());
  world.slots.resize(local_sizes[host]);
  for (uint32_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].host != host) continue;
    uint32_t local = places[rank].local_rank;
    Placement& p = world.slots[local] = {rank, host, local, local_sizes[host], 0, 0};
    for (uint32_t other = 0; other < local_sizes.size(); ++other) {
      if (local_sizes[other] <= local) continue;
      if (other < host) ++p.cross_rank;
      ++p.cross_size;
    }
  }
  return world;
}

Result<HostWorld> PartOfWaiting(const WorldRecord& note, const WaitingHost& here,
                                const std::string& token) {
  auto host = std::find(note.tokens.begin(), note.tokens.end(), token);
  if (host == note.tokens.end()) return InvalidArgument("has nothing about this host");
  if (note.generation <= here.last_generation)
    return InvalidArgument("has a generation that is over");
  Result<std::vector<RankPlace>> places = PlacesOf(note.layout, here.size);
  if (!places.ok()) return InvalidArgument("has " + places.status().message());
  HostWorld world = PartOfHost(*places, static_cast<uint32_t>(host - note.tokens.begin()));
  std::vector<uint32_t> ranks;
  for (const Placement& place : world.slots) ranks.push_back(place.rank);
  if (ranks != here.ranks) return InvalidArgument("has other ranks on this host than have come");
  world.data_key = note.data_key;
  return world;
}

}  // namespace hvd
