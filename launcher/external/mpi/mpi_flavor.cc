#include "launcher/external/mpi/mpi_flavor.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace hvd {
namespace {

struct Mark {
  std::string_view words;  // by which this MPI identifies itself
  MpiFlavor flavor;
  std::string_view name;
};
// The first match applies: derived implementations name the original, too.
constexpr Mark kMarks[] = {
    {"IBM Spectrum MPI", MpiFlavor::kSpectrum, "Spectrum MPI"},
    {"Intel(R) MPI", MpiFlavor::kIntel, "Intel MPI"},
    {"Open MPI", MpiFlavor::kOpenMpi, "Open MPI"},
    {"OpenRTE", MpiFlavor::kOpenMpi, "Open MPI"},
    {"HYDRA", MpiFlavor::kMpich, "MPICH"},
    {"MPICH", MpiFlavor::kMpich, "MPICH"},
};

// Texts that precede an unknown argument.
constexpr std::string_view kUnknown[] = {"unknown option \"", "unrecognized argument "};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The first number with a dot in it: "4.1.4" of "mpirun (Open MPI) 4.1.4".
std::string_view NumberIn(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (!IsDigit(text[at])) continue;
    size_t end = at;
    while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
    const std::string_view number = text.substr(at, end - at);
    if (number.find('.') != std::string_view::npos) return number;
    at = end;
  }
  return {};
}

}  // namespace

std::optional<MpiVersion> ReadMpiVersion(const std::string& printed) {
  const auto mark = std::find_if(std::begin(kMarks), std::end(kMarks), [&](const Mark& m) {
    return printed.find(m.words) != std::string::npos;
  });
  if (mark == std::end(kMarks)) return std::nullopt;
  MpiVersion version{mark->flavor, 0, std::string(mark->name)};
  const std::string_view number = NumberIn(printed);
  std::from_chars(number.data(), number.data() + number.size(), version.major);
  if (!number.empty()) version.name += " " + std::string(number);
  return version;
}

std::string UnknownArgument(const std::string& printed) {
  for (std::string_view words : kUnknown) {
    size_t at = printed.find(words);
    if (at == std::string::npos) continue;
    at += words.size();
    const std::string name = printed.substr(at, printed.find_first_of("\" \r\n", at) - at);
    return name.starts_with('-') ? name : "-" + name;  // Hydra removed the dash
  }
  return "";
}

}  // namespace hvd
