#include "launcher/stall/flight_dump.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "launcher/stall/plain_pickle.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMostNameBytes = 100;
constexpr size_t kMostTensors = 3;     // number that are named
constexpr size_t kMostDimensions = 8;  // of one
constexpr size_t kEntriesBefore = 8;   // the first unfinished one
constexpr size_t kEntriesAtTheEnd = 8;
constexpr size_t kMostMembers = 65536;
// A small pickle can expand hugely by referring to one list repeatedly.
constexpr size_t kMostDumpEntries = 200'000;
constexpr uint64_t kMostSteps = uint64_t{1} << 27;

using PickleValue = PlainPickle::Value;

class DumpReader {
 public:
  explicit DumpReader(const PlainPickle& pickle) : pickle_(pickle) {}

  Result<std::vector<FlightGroup>> Groups() {
    const PickleValue& entries = Get(pickle_.root(), "entries");
    if (pickle_.root().kind != PlainPickle::Kind::kDict || entries.kind != PlainPickle::Kind::kList)
      return InvalidArgument("it is no dump of PyTorch's flight recorder");
    for (uint32_t entry : entries.items) {
      Add(pickle_.At(entry));
      if (steps_ > kMostSteps || entries_ > kMostDumpEntries)
        return InvalidArgument("it says too much for a dump of PyTorch's flight recorder");
    }
    std::vector<FlightGroup> groups;
    for (auto& [name, group] : groups_) {
      if (groups.size() == kMostFlightGroups) break;
      group.ranks = RanksOf(name.first);
      Thin(group.entries);
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  static std::string Text(const PickleValue& value) {
    return std::string(value.text.substr(0, kMostNameBytes));
  }
  static uint64_t Count(const PickleValue& value) {
    return value.kind == PlainPickle::Kind::kInt && value.number > 0
               ? static_cast<uint64_t>(value.number)
               : 0;
  }

  // Counts the cost.
  const PickleValue& Get(const PickleValue& dict, std::string_view key) const {
    const bool too_much = (steps_ += dict.items.size()) > kMostSteps;
    return too_much ? pickle_.At(0) : pickle_.Get(dict, key);
  }

  void Add(const PickleValue& entry) {
    ++entries_;
    const PickleValue& name = Get(entry, "process_group");
    const bool has_name = name.kind == PlainPickle::Kind::kList && name.items.size() == 2;
    if (!has_name) return;
    const std::pair<std::string, std::string> key{Text(pickle_.At(name.items[0])),
                                                  Text(pickle_.At(name.items[1]))};
    FlightGroup& group = groups_[key];
    std::tie(group.name, group.description) = key;
    FlightEntry read = Entry(entry);
    if (read.is_message == 0) group.last = std::max(group.last, read.number);
    group.entries.push_back(std::move(read));
  }

  FlightEntry Entry(const PickleValue& entry) const {
    FlightEntry read;
    read.is_message = Get(entry, "is_p2p").number != 0 ? 1 : 0;
    const char* number = read.is_message != 0 ? "p2p_seq_id" : "collective_seq_id";
    read.number = Count(Get(entry, number));
    const std::string name = Text(Get(entry, "profiling_name"));
    read.operation = name.substr(name.rfind(':') + 1);  // without "nccl:"
    read.state = State(entry, read);
    const PickleValue& inputs = Get(entry, "input_sizes");
    const PickleValue& outputs = Get(entry, "output_sizes");
    read.inputs = Elements(inputs);
    read.outputs = Elements(outputs);
    const bool by_output = inputs.items.empty();
    const PickleValue& types = Get(entry, by_output ? "output_dtypes" : "input_dtypes");
    if (types.kind == PlainPickle::Kind::kList && !types.items.empty())
      read.type = Text(pickle_.At(types.items[0]));
    read.tensors = Tensors(read.type, by_output ? outputs : inputs);
    return read;
  }

  // Gloo only records that it is done, which may mean that it timed out.
  FlightState State(const PickleValue& entry, const FlightEntry& read) const {
    const std::string_view state = Get(entry, "state").text;
    const bool retired = Get(entry, "retired").number != 0;
    const PickleValue& status =
        Get(Get(pickle_.root(), "pg_status"), std::to_string(Get(entry, "pg_id").number));
    const uint64_t completed = Count(Get(status, "last_completed_collective"));
    const bool is_over = retired && (read.is_message != 0 || read.number <= completed);
    if (state == "completed" || is_over) return FlightState::kCompleted;
    return state == "started" ? FlightState::kStarted : FlightState::kScheduled;
  }

  uint64_t Elements(const PickleValue& sizes) const {
    uint64_t all = 0;
    for (uint32_t tensor : sizes.items) {
      uint64_t elements = 1;
      if ((steps_ += 1 + pickle_.At(tensor).items.size()) > kMostSteps) return 0;
      for (uint32_t size : pickle_.At(tensor).items) elements *= Count(pickle_.At(size));
      all += elements;
    }
    return all;
  }

  std::string Tensors(const std::string& type, const PickleValue& sizes) const {
    if (type.empty() && sizes.items.empty()) return "";
    std::string text = type;
    for (size_t i = 0; i < std::min(sizes.items.size(), kMostTensors); ++i) {
      text += i == 0 ? " [" : ", [";
      const std::vector<uint32_t>& dimensions = pickle_.At(sizes.items[i]).items;
      for (size_t d = 0; d < std::min(dimensions.size(), kMostDimensions); ++d)
        text += Format("{}{}", d == 0 ? "" : ", ", pickle_.At(dimensions[d]).number);
      text += dimensions.size() > kMostDimensions ? ", ...]" : "]";
    }
    if (sizes.items.size() > kMostTensors)
      text += Format(" and {} more", sizes.items.size() - kMostTensors);
    return text;
  }

  // The ranks as in the dump: "[0, 1]".
  std::vector<uint32_t> RanksOf(const std::string& group) const {
    const PickleValue& config = Get(Get(pickle_.root(), "pg_config"), group);
    std::string_view text = Get(config, "ranks").text;
    std::vector<uint32_t> ranks;
    while (ranks.size() < kMostMembers) {
      const size_t digit = text.find_first_of("0123456789");
      if (digit == text.npos) break;
      text.remove_prefix(digit);
      uint32_t rank = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (error != std::errc()) return {};
      ranks.push_back(rank);
      text.remove_prefix(static_cast<size_t>(end - text.data()));
    }
    return ranks;
  }

  static void Thin(std::vector<FlightEntry>& entries) {
    if (entries.size() <= kMostFlightEntries) return;
    const auto open = std::ranges::find_if(
        entries, [](const FlightEntry& e) { return e.state != FlightState::kCompleted; });
    const size_t first = static_cast<size_t>(open - entries.begin());
    const size_t end = entries.size() - kEntriesAtTheEnd;
    const size_t begin = std::min(first - std::min(first, kEntriesBefore), end);
    const size_t stop = std::min(end, begin + kMostFlightEntries - kEntriesAtTheEnd);
    std::vector<FlightEntry> kept(
        std::make_move_iterator(entries.begin() + static_cast<long>(begin)),
        std::make_move_iterator(entries.begin() + static_cast<long>(stop)));
    kept.insert(kept.end(), std::make_move_iterator(entries.begin() + static_cast<long>(end)),
                std::make_move_iterator(entries.end()));
    entries = std::move(kept);
  }

  const PlainPickle& pickle_;
  mutable uint64_t steps_ = 0;
  size_t entries_ = 0;
  std::map<std::pair<std::string, std::string>, FlightGroup> groups_;
};

}  // namespace

Result<std::vector<FlightGroup>> ParseFlightDump(std::string_view bytes) {
  Result<PlainPickle> pickle = PlainPickle::Parse(bytes);
  if (!pickle.ok()) return pickle.status();
  return DumpReader(*pickle).Groups();
}

}  // namespace hvd
