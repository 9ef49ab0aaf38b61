#include "launcher/stall/guest_ranks.h"

#include <array>
#include <deque>
#include <optional>
#include <string_view>

#include "launcher/process/proc_file.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// One launcher's variables: the rank, and what tells its world from others.
struct Names {
  std::string_view rank;
  std::array<std::string_view, 4> world;
};
constexpr auto kLaunchers = std::to_array<Names>({
    {"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "", ""}},
    {"PMI_RANK", {"PMI_SIZE", "", "", ""}},
    {"RANK", {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}},
});

// Empty where it has none.
std::string PlaceIn(std::string_view environment, const Names& names) {
  const std::optional<std::string> rank = VariableIn(environment, names.rank);
  if (!rank) return "";
  std::string place = *rank;
  for (const std::string_view name : names.world)
    place += "\n" + VariableIn(environment, name).value_or("");
  return place;
}

std::optional<uint32_t> GuestRankIn(std::string_view environment, std::string_view of_worker) {
  for (const Names& names : kLaunchers) {
    const std::string place = PlaceIn(environment, names);
    if (!place.empty() && place != PlaceIn(of_worker, names))
      return ParseWhole<uint32_t>(std::string_view(place).substr(0, place.find('\n')));
  }
  return std::nullopt;
}

}  // namespace

std::vector<GuestRank> GuestsBelow(pid_t worker, const std::vector<ProcessInfo>& all,
                                   const std::function<std::string(pid_t)>& environment_of) {
  std::vector<GuestRank> guests;
  const std::string of_worker = environment_of(worker);
  std::deque<pid_t> next{worker};
  for (; !next.empty(); next.pop_front()) {
    for (const ProcessInfo& process : all) {
      if (process.parent != next.front() || process.state == 'Z') continue;
      if (const auto rank = GuestRankIn(environment_of(process.pid), of_worker))
        guests.push_back({*rank, process.pid});
      else
        next.push_back(process.pid);
    }
  }
  return guests;
}

}  // namespace hvd
