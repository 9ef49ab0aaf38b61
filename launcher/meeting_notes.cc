#include "launcher/meeting_notes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace hvd {
namespace {

constexpr std::string_view kRank = "hvd-rank-1", kWorld = "hvd-world-2";
constexpr size_t kMaxWord = 128;

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

Status NoNote(std::string_view what) {
  return InvalidArgument("what the key-value server has is no note about a " + std::string(what));
}

}  // namespace

std::string EncodeNote(const RankNote& note) {
  return std::string(kRank) + " " + note.token + " " + std::to_string(note.local_rank) + " " +
         std::to_string(note.last_epoch);
}

std::string EncodeNote(const WorldNote& note) {
  std::string text = std::string(kWorld) + " " + std::to_string(note.epoch) + " " + note.data_key +
                     " " + std::to_string(note.tokens.size());
  for (const std::string& token : note.tokens) text += " " + token;
  text += " " + std::to_string(note.layout.size());
  for (const RankRun& run : note.layout) {
    for (uint32_t number : run.Numbers()) text += " " + std::to_string(number);
  }
  return text;
}

Result<RankNote> DecodeRankNote(std::string_view text) {
  Words words(text);
  bool known = words.Word() == kRank;
  RankNote note;
  note.token = words.Word();
  note.local_rank = words.Number<uint32_t>();
  note.last_epoch = words.Number<uint64_t>();
  if (!known || !words.Done()) return NoNote("rank");
  return note;
}

Result<WorldNote> DecodeWorldNote(std::string_view text) {
  Words words(text);
  bool known = words.Word() == kWorld;
  WorldNote note;
  note.epoch = words.Number<uint64_t>();
  note.data_key = words.Word();
  for (auto left = words.Number<uint32_t>(); left > 0 && words.ok(); --left)
    note.tokens.emplace_back(words.Word());
  for (auto left = words.Number<uint32_t>(); left > 0 && words.ok(); --left) {
    std::array<uint32_t, 4> numbers{};
    for (uint32_t& number : numbers) number = words.Number<uint32_t>();
    note.layout.push_back(RankRun::Of(numbers));
  }
  if (!known || !words.Done()) return NoNote("world");
  return note;
}

Result<WorldNote> WorldOfNotes(const std::vector<RankNote>& notes, std::string data_key) {
  WorldNote world;
  world.data_key = std::move(data_key);
  std::vector<RankPlace> places;
  for (const RankNote& note : notes) {
    auto host = std::find(world.tokens.begin(), world.tokens.end(), note.token);
    places.push_back({static_cast<uint32_t>(host - world.tokens.begin()), note.local_rank});
    if (host == world.tokens.end()) world.tokens.push_back(note.token);
    world.epoch = std::max(world.epoch, note.last_epoch + 1);
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

}  // namespace hvd
