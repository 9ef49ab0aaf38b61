#include "launcher/external/places/place.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {

namespace {

struct PlaceVariables {
  const char *place, *of;
};
constexpr PlaceVariables kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
};
constexpr uint32_t kMostPlaces = 1'000'000;

std::optional<PlaceNumber> NumberOf(std::string_view place, std::string_view of) {
  const std::optional<uint32_t> number = ParseWhole<uint32_t>(place),
                                size = ParseWhole<uint32_t>(of);
  if (!number || !size || *number >= *size || *size > kMostPlaces) return std::nullopt;
  return PlaceNumber{*number, *size};
}

// Variables that belong to the process, its login or hvdrun, whoever started it.
bool IsOfProcess(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  constexpr std::string_view kNames[] = {"_", "PWD", "OLDPWD", "SHLVL"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         name.starts_with("SSH_") || name.starts_with("HVD_") || name.starts_with("HYDI_");
}

}  // namespace

std::optional<PlaceNumber> PlaceNumberOf(
    const std::function<std::optional<std::string>(const char*)>& env) {
  for (const PlaceVariables& launcher : kLaunchers) {
    const std::optional<std::string> place = env(launcher.place), of = env(launcher.of);
    if (place && of) return NumberOf(*place, *of);
  }
  return std::nullopt;
}

std::string PlaceText(PlaceNumber number) { return Format("{}/{}", number.place, number.of); }

std::optional<PlaceNumber> ParsePlace(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return NumberOf(std::string_view(text).substr(0, slash),
                  std::string_view(text).substr(slash + 1));
}

std::vector<std::string> VariablesOfLauncher(const std::vector<std::string>& place,
                                             const std::vector<std::string>& driver,
                                             const std::vector<std::string>& own) {
  std::set<std::string_view> known(driver.begin(), driver.end());
  known.insert(own.begin(), own.end());
  std::vector<std::string> added;
  for (const std::string& entry : place) {
    if (!known.contains(entry) && !IsOfProcess(entry)) added.push_back(entry);
  }
  return added;
}

std::string PlaceAddress(const std::string& agent_job_id) { return "hvd-places-" + agent_job_id; }

namespace {

constexpr std::string_view kExit = "exit ", kSignal = "signal ";

}  // namespace

std::string PlaceEndText(const ProcessEnd& end) {
  return std::string(end.by_signal ? kSignal : kExit) + std::to_string(end.value);
}

std::optional<ProcessEnd> ParsePlaceEnd(const std::string& text) {
  ProcessEnd end;
  end.by_signal = text.starts_with(kSignal);
  if (!end.by_signal && !text.starts_with(kExit)) return std::nullopt;
  const auto value =
      ParseWhole<int32_t>(std::string_view(text).substr((end.by_signal ? kSignal : kExit).size()));
  const int32_t least = end.by_signal ? 1 : 0, most = end.by_signal ? 64 : 255;
  if (!value || *value < least || *value > most) return std::nullopt;
  end.value = *value;
  return end;
}

}  // namespace hvd
