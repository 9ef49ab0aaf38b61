#include "launcher/external/places/place_end.h"

#include <string_view>

#include "runtime/base/text/number_text.h"

namespace hvd {
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
