// Any bytes as what the processes of another launcher and an agent tell each other: a place, an
// environment, an end. A place that is read is written and read again as the same. And as what
// mpirun says of itself.
#include <algorithm>

#include "launcher/external/mpi/mpi_flavor.h"
#include "launcher/external/places/place.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

void ReadPlace(const std::string& text) {
  const std::optional<PlaceNumber> number = ParsePlace(text);
  if (!number) return;
  Must(number->place < number->of);
  Must(ParsePlace(PlaceText(*number)) == number);
}

void ReadEnd(const std::string& text) {
  const std::optional<ProcessEnd> end = ParsePlaceEnd(text);
  if (!end) return;
  Must(end->by_signal ? end->value > 0 && end->value <= 64 : end->value >= 0 && end->value <= 255);
  Must(ParsePlaceEnd(PlaceEndText(*end)) == end);
}

// Entries as in /proc/PID/environ: those of the place, of the driver and of the agent, in turns.
void ReadVariables(std::string_view bytes) {
  std::vector<std::string> entries[3];
  for (size_t n = 0; !bytes.empty(); ++n) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    entries[n % 3].emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  const std::vector<std::string>&place = entries[0], &driver = entries[1], &agent = entries[2];
  const std::vector<std::string> added = VariablesOfLauncher(place, driver, agent);
  Must(added.size() <= place.size());
  for (const std::string& entry : added) {
    Must(std::find(place.begin(), place.end(), entry) != place.end());
    Must(std::find(driver.begin(), driver.end(), entry) == driver.end());
  }
  const std::optional<PlaceNumber> number =
      PlaceNumberOf([&](const char* name) -> std::optional<std::string> {
        const std::string begin = std::string(name) + "=";
        for (const std::string& entry : place) {
          if (entry.starts_with(begin)) return entry.substr(begin.size());
        }
        return std::nullopt;
      });
  if (number) Must(number->place < number->of);
}

void ReadMpirun(const std::string& text) {
  const std::optional<MpiVersion> version = ReadMpiVersion(text);
  Must(!version || (!version->name.empty() && version->name.find('\n') == std::string::npos));
  const std::string unknown = UnknownArgument(text);
  Must(unknown.empty() || (unknown.front() == '-' && unknown.find('\n') == std::string::npos));
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"3/8", "0/1", "exit 7", "signal 9", "mpirun (Open MPI) 4.1.4\n",
              "HYDRA build details:\n    Version: 4.0.2\n", "unknown option \"-foo\"\n",
              "unrecognized argument foo\n",
              std::string("OMPI_COMM_WORLD_RANK=1\0A=1\0B=2\0OMPI_COMM_WORLD_SIZE=4\0", 50),
              std::string("PMI_RANK=0\0\0\0PMI_SIZE=2", 23)});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ReadPlace(text);
  ReadEnd(text);
  ReadVariables(text);
  ReadMpirun(text);
  return 0;
}
