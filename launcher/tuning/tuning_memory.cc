#include "launcher/tuning/tuning_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "launcher/output/text/json_field.h"
#include "runtime/base/hash.h"
#include "runtime/base/output_file.h"
#include "runtime/base/read_file.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr ReadLimits kLimits{.bytes = size_t{1} << 20};
constexpr size_t kIdDigits = 12;

Json JsonOf(const TuningCase& of) {
  return {{"hvdrun", of.version},
          {"ranks", of.world.size},
          {"ranks_of_this_host", of.world.local_size},
          {"cores_of_this_host", of.world.cores},
          {"processor", of.processor},
          {"given", of.given},
          {"model", HexOf(of.model)},
          {"links", of.links}};
}

std::string TextOf(const RememberedTuning& found) {
  Json json = JsonOf(found.of);
  json["values"] = found.values;
  json["gained"] = found.gained;
  json["gain"] = found.gain;
  json["gain_low"] = found.gain_low;
  json["gain_high"] = found.gain_high;
  json["windows"] = found.windows;
  json["found_at"] = found.found_at;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Throws if a part is missing, has another type or is out of range.
RememberedTuning Parsed(const std::string& text) {
  const Json json = Json::parse(text);
  RememberedTuning found;
  std::string model;
  ReadField(json, "hvdrun", found.of.version);
  ReadField(json, "ranks", found.of.world.size);
  ReadField(json, "ranks_of_this_host", found.of.world.local_size);
  ReadField(json, "cores_of_this_host", found.of.world.cores);
  ReadField(json, "processor", found.of.processor);
  ReadField(json, "given", found.of.given);
  ReadField(json, "model", model);
  found.of.model = ParseWhole<uint64_t>(model, 16).value();
  found.of.links = json.value("links", "");  // earlier versions had none
  ReadField(json, "values", found.values);
  ReadField(json, "gained", found.gained);
  ReadField(json, "gain", found.gain);
  ReadField(json, "gain_low", found.gain_low);
  ReadField(json, "gain_high", found.gain_high);
  ReadField(json, "windows", found.windows);
  ReadField(json, "found_at", found.found_at);
  return found;
}

Result<RememberedTuning> ReadResult(const std::string& path) {
  Result<std::string> text = ReadFileWithin(path, kLimits);
  if (!text.ok()) return InvalidArgument(path + " " + text.status().message());
  try {
    return Parsed(*text);
  } catch (const std::exception& error) {
    return InvalidArgument(path + " is not a result of tuning (" + error.what() + ")");
  }
}

}  // namespace

std::string IdOf(const TuningCase& of) {
  return HexOf(HashOf(JsonOf(of).dump(-1, ' ', false, Json::error_handler_t::replace)))
      .substr(0, kIdDigits);
}

TunePoint PointOf(const RememberedTuning& remembered, const std::vector<TuneAxis>& axes) {
  TunePoint point;
  for (const TuneAxis& axis : axes) {
    const auto value = remembered.values.find(axis.name);
    const bool usable = !axis.pinned && value != remembered.values.end() &&
                        value->second >= axis.low && value->second <= axis.high;
    point.push_back(usable ? value->second : axis.initial);
  }
  return point;
}

std::string TuningFolder(
    const std::function<std::optional<std::string>(const char* name)>& variable) {
  const std::string cache = variable("XDG_CACHE_HOME").value_or("");
  if (cache.starts_with('/')) return cache + "/hvdrun/tuning";
  const std::string home = variable("HOME").value_or("");
  return home.starts_with('/') ? home + "/.cache/hvdrun/tuning" : "";
}

Result<std::optional<RememberedTuning>> TuningMemory::Find(const TuningCase& of) const {
  const std::string path = PathOf(IdOf(of));
  if (folder_.empty() || ::access(path.c_str(), F_OK) != 0)
    return std::optional<RememberedTuning>();
  Result<RememberedTuning> found = ReadResult(path);
  if (!found.ok()) return found.status();
  // Two cases with the same id: treated as not found.
  if (found->of != of) return std::optional<RememberedTuning>();
  return std::optional<RememberedTuning>(std::move(*found));
}

Status TuningMemory::Keep(const RememberedTuning& found) const {
  if (folder_.empty()) return InvalidArgument("neither XDG_CACHE_HOME nor HOME names a folder");
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return InvalidArgument(folder_ + " cannot be made: " + error.message());
  return WriteWholeFile(PathOf(IdOf(found.of)), TextOf(found));
}

TuningMemory::Listed TuningMemory::All() const {
  Listed listed;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    Result<RememberedTuning> found = ReadResult(entry->path().string());
    if (found.ok()) {
      listed.results.emplace(entry->path().stem().string(), std::move(*found));
    } else {
      listed.damaged.push_back(found.status().message());
    }
  }
  std::sort(listed.damaged.begin(), listed.damaged.end());
  return listed;
}

Status TuningMemory::Forget(const std::string& id) const {
  const std::string path = PathOf(id);
  if (::unlink(path.c_str()) == 0) return Status::Ok();
  return SystemError(path + " cannot be removed", errno);
}

std::string ProcessorModel() {
  constexpr std::string_view kKey = "model name";
  const Result<std::string> text = ReadFileWithin("/proc/cpuinfo", {});
  if (!text.ok()) return "unknown";
  const size_t key = text->find(kKey);
  const size_t value = key == std::string::npos ? key : text->find(": ", key);
  if (value == std::string::npos) return "unknown";
  return text->substr(value + 2, text->find('\n', value) - value - 2);
}

}  // namespace hvd
