#include "launcher/external/adopt/rendezvous_records.h"

#include <algorithm>
#include <concepts>
#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/fields.h"

namespace hvd {
namespace {

constexpr std::string_view kRank = "hvd-rank-1", kWorld = "hvd-world-2",
                           kRefusal = "hvd-no-world-1 ";
constexpr size_t kMaxWord = 128;
constexpr size_t kKeyDigits = 64;
constexpr size_t kMostShown = 1000;  // of a reason

// Writes the fields of a record (fields.h) as words separated by single blanks; a list is its count
// and its items.
class WordWriter {
 public:
  explicit WordWriter(std::string_view title) : text_(title) {}
  void operator()(const auto&... fields) { (Put(fields), ...); }
  std::string Release() { return std::move(text_); }

 private:
  void Put(const std::string& word) { text_ += " " + word; }
  void Put(std::integral auto number) { Put(std::to_string(number)); }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Put(list.size());
    for (const T& item : list) Put(item);
  }
  void Put(const RankRun& run) { Fields(*this, run); }

  std::string text_;
};

class WordReader {
 public:
  // Refuses a list of more than `most` items before reading them.
  WordReader(std::string_view text, uint32_t most) : text_(text), most_(most) {}
  void operator()(auto&... fields) { (Get(fields), ...); }
  std::string_view Word() {
    if (at_end_) ok_ = false;
    std::string_view word = text_.substr(0, text_.find(' '));
    at_end_ = word.size() == text_.size();
    text_.remove_prefix(std::min(text_.size(), word.size() + 1));
    if (word.empty() || word.size() > kMaxWord) ok_ = false;
    return word;
  }
  bool Done() const { return ok_ && at_end_; }
  // The count that the first list states; 0 if there is none.
  uint32_t first_count() const { return first_count_.value_or(0); }

 private:
  void Get(std::string& word) { word = Word(); }
  template <std::integral T>
  void Get(T& number) {
    const std::optional<T> read = ParseWhole<T>(Word());
    ok_ = ok_ && read;
    number = read.value_or(0);
  }
  template <typename T>
  void Get(std::vector<T>& list) {
    uint32_t count = 0;
    Get(count);
    if (!first_count_) first_count_ = ok_ ? count : 0;
    ok_ = ok_ && count <= most_;
    for (; count > 0 && ok_; --count) Get(list.emplace_back());
  }
  void Get(RankRun& run) { Fields(*this, run); }

  std::string_view text_;
  const uint32_t most_;
  std::optional<uint32_t> first_count_;
  bool ok_ = true, at_end_ = false;
};

template <typename Record>
std::string EncodeFields(std::string_view title, const Record& record) {
  WordWriter words(title);
  Fields(words, record);
  return words.Release();
}

// Whether the text consists of this title and the fields of the record.
template <typename Record>
bool DecodeFields(WordReader& words, std::string_view title, Record& record) {
  if (words.Word() != title) return false;
  Fields(words, record);
  return words.Done();
}

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
    return InvalidArgument(Format("names {} hosts for a layout of {}", note.tokens.size(), hosts));
  }
  return Status::Ok();
}

}  // namespace

void Fields(auto& f, MaybeConst<RankEntry> auto& note) {
  f(note.token, note.local_rank, note.last_generation);
}
void Fields(auto& f, MaybeConst<WorldRecord> auto& note) {
  f(note.generation, note.data_key, note.tokens, note.layout);
}

std::string EncodeRecord(const RankEntry& note) { return EncodeFields(kRank, note); }
std::string EncodeRecord(const WorldRecord& note) { return EncodeFields(kWorld, note); }

Result<RankEntry> DecodeRankEntry(std::string_view text) {
  WordReader words(text, 0);
  RankEntry note;
  if (!DecodeFields(words, kRank, note) || !IsRendezvousName(note.token)) return NoNote("rank");
  if (note.local_rank >= kMaxRanks) return InvalidArgument("has a local rank that cannot be");
  if (note.last_generation >= kLastMetGeneration)
    return InvalidArgument("has a generation that cannot be");
  return note;
}

Result<WorldRecord> DecodeWorldRecord(std::string_view text, uint32_t size) {
  WordReader words(text, size);  // a host has at least one rank, and so has a run
  WorldRecord note;
  const bool read = DecodeFields(words, kWorld, note);
  if (const uint32_t hosts = words.first_count(); hosts > size) {
    return InvalidArgument(Format("names {} hosts for a world of {} ranks", hosts, size));
  }
  if (!read) return NoNote("world");
  HVD_RETURN_IF_ERROR(CheckWorld(note, size));
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
