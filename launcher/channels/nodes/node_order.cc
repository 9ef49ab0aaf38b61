#include "launcher/channels/nodes/node_order.h"

#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr std::string_view kRun = "run ";
constexpr std::string_view kEnd = "end ";
constexpr size_t kMostLine = 32;

}  // namespace

std::string OrderText(const NodeOrder& order) {
  if (!order.command) return Format("{}{}\n", kEnd, order.code);
  return Format("{}{}\n", kRun, order.command->size()) + *order.command;
}

bool OrderReader::Add(std::string_view bytes) {
  held_ += bytes;
  return Parse();
}

bool OrderReader::Parse() {
  if (!wanted_) {
    const size_t end = held_.find('\n');
    if (end == std::string::npos) return held_.size() > kMostLine;
    const std::string line = held_.substr(0, end);
    held_.erase(0, end + 1);
    if (line.starts_with(kEnd)) {
      const auto code = ParseWhole<uint32_t>(line.substr(kEnd.size()));
      if (code && *code <= 255) order_ = NodeOrder{std::nullopt, static_cast<int>(*code)};
      return true;
    }
    const auto size =
        line.starts_with(kRun) ? ParseWhole<uint32_t>(line.substr(kRun.size())) : std::nullopt;
    if (!size || *size == 0 || *size > kMostCommand) return true;
    wanted_ = *size;
  }
  if (held_.size() < *wanted_) return false;
  order_ = NodeOrder{held_.substr(0, *wanted_), 0};
  held_.erase(0, *wanted_);
  return true;
}

}  // namespace hvd
