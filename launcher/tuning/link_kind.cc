#include "launcher/tuning/link_kind.h"

#include <algorithm>
#include <array>

#include "runtime/base/read_file.h"
#include "runtime/base/status.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// In Mbit/s. Bonded links have a sum, which also falls into a class.
constexpr std::array<int64_t, 12> kUsual{100,    1000,   2500,    5000,    10'000,  25'000,
                                         40'000, 50'000, 100'000, 200'000, 400'000, 800'000};

int64_t SpeedOf(const std::string& interface, const std::string& folder) {
  const Result<std::string> text = ReadFileWithin(folder + "/" + interface + "/speed", {});
  if (!text.ok()) return 0;
  return ParseWhole<int64_t>(text->substr(0, text->find('\n'))).value_or(0);
}

}  // namespace

std::string SpeedClass(int64_t mbit_per_second) {
  const auto above = std::upper_bound(kUsual.begin(), kUsual.end(), mbit_per_second);
  if (mbit_per_second <= 0) return "unknown";
  if (above == kUsual.begin()) return "below 100 Mbit/s";
  const int64_t usual = *(above - 1);
  if (usual < 1000) return Format("{} Mbit/s", usual);
  const std::string half = usual == 2500 ? ".5" : "";
  return Format("{}{} Gbit/s", usual / 1000, half);
}

std::string LinkKind(std::span<const std::string> interfaces, const std::string& folder) {
  if (interfaces.empty()) return "loopback";
  int64_t fastest = 0;
  for (const std::string& interface : interfaces)
    fastest = std::max(fastest, SpeedOf(interface, folder));
  return SpeedClass(fastest);
}

}  // namespace hvd
