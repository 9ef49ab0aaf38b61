#include "launcher/tuning/tuning_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "configs/message_text.h"
#include "configs/settings_table.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

std::string Signed(double part) { return Format("{:+.1f} %", 100 * part); }

std::string DateText(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  char text[64];
  if (::gmtime_r(&time, &parts) == nullptr) return "unknown";
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts));
}

std::string AgeText(int64_t seconds) {
  constexpr std::array<std::pair<int64_t, const char*>, 3> kUnits{
      {{86'400, " d"}, {3600, " h"}, {60, " min"}}};
  for (const auto& [unit, name] : kUnits) {
    if (seconds >= unit) return std::to_string(seconds / unit) + name;
  }
  return Format("{} s", std::max<int64_t>(0, seconds));
}

std::string RanksText(const TunedWorld& world) {
  return std::to_string(world.size) + (world.local_size == world.size ? " on one host" : "");
}

std::string Shown(const std::string& text) { return text.empty() ? "-" : Printable(text); }

std::string Line(const char* name, const std::string& value) {
  return Format("{:<10}{}\n", name, value);
}

}  // namespace

std::string GainText(const RememberedTuning& found) {
  if (!found.gained || found.gain_low <= 0) return "none that could be measured";
  return Signed(found.gain) + " (" + Signed(found.gain_low) + " to " + Signed(found.gain_high) +
         ")";
}

std::string TuningTable(const std::map<std::string, RememberedTuning>& results, int64_t now) {
  std::vector<std::pair<std::string, const RememberedTuning*>> sorted;
  for (const auto& [id, found] : results) sorted.emplace_back(id, &found);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second->found_at > b.second->found_at; });
  std::string text =
      "ID                 AGE  RANKS           GAIN                            SETTINGS\n";
  for (const auto& [id, found] : sorted) {
    text += Format("{:<12}  {:>8}  {:<14}  {:<30}  {}\n", id, AgeText(now - found->found_at),
                   RanksText(found->of.world), GainText(*found), FlagsOf(found->values));
  }
  return text;
}

std::string TuningDetails(const std::string& id, const RememberedTuning& found) {
  const TuningCase& of = found.of;
  return Line("id", id) + Line("settings", FlagsOf(found.values)) + Line("gain", GainText(found)) +
         Line("windows", std::to_string(found.windows)) + Line("found", DateText(found.found_at)) +
         Line("ranks", Format("{}, {} on the host of rank 0, which has {} cores for them",
                              RanksText(of.world), of.world.local_size, of.world.cores)) +
         Line("links", Shown(of.links)) + Line("processor", Shown(of.processor)) +
         Line("given", Shown(of.given)) + Line("hvdrun", Shown(of.version));
}

std::string TuningJson(const std::map<std::string, RememberedTuning>& results) {
  Json json = Json::array();
  for (const auto& [id, found] : results) {
    json.push_back({{"id", id},
                    {"settings", found.values},
                    {"flags", FlagsOf(found.values)},
                    {"gained", found.gained},
                    {"gain", found.gain},
                    {"gain_low", found.gain_low},
                    {"gain_high", found.gain_high},
                    {"windows", found.windows},
                    {"found_at", found.found_at},
                    {"ranks", found.of.world.size},
                    {"ranks_of_this_host", found.of.world.local_size},
                    {"cores_of_this_host", found.of.world.cores},
                    {"links", found.of.links},
                    {"processor", found.of.processor},
                    {"given", found.of.given},
                    {"hvdrun", found.of.version}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::map<std::string, std::string> ConfigOf(const RememberedTuning& found) {
  std::map<std::string, std::string> config;
  for (const auto& [axis, value] : found.values) {
    const std::string_view flag = FlagOf(axis);
    for (const Row& row : SettingRows()) {
      if (row.tunable && row.flags.front() == flag)
        config[std::string(row.yaml)] = std::to_string(std::lround(value));
    }
  }
  return config;
}

std::string ConfigHead(const std::string& id, const RememberedTuning& found) {
  return "# " + id + ", found by hvdrun --autotune at " + DateText(found.found_at) +
         "\n# ranks: " + RanksText(found.of.world) +
         "; processor: " + Printable(found.of.processor) + "; gain: " + GainText(found) + "\n";
}

}  // namespace hvd
