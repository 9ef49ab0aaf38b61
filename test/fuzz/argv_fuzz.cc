// Any command line, one argument a line: settings or one sentence, never a crash, and the same
// answer twice.
#include <string>
#include <vector>

#include "configs/command_line.h"
#include "test/fuzz/seeds.h"

namespace {

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

hvd::Result<hvd::ParsedCommandLine> Parse(const std::vector<std::string>& args) {
  auto no_variables = [](const char*) -> std::optional<std::string> { return std::nullopt; };
  auto no_file = [](const std::string&) -> hvd::Result<std::string> { return std::string(); };
  return hvd::ParseCommandLine(args, no_variables, no_file);
}

// Named hosts tell how many processes there are, once they are read.
bool CountComesFromHosts(const hvd::Settings& settings) {
  return settings.num_proc == 0 && !hvd::IsElastic(settings) &&
         (!settings.hosts.empty() || !settings.hostfile.empty());
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  hvd::WriteSeeds(
      *argc, *argv,
      {"-np\n2\npython\nt.py", "-np=2\n-H=a:1,b:2\n--verb\n--\n-x", "-x\nA=b\n-x\nC\n-cb",
       "--no-fold\n--color\nnever\n--timeout\n1e3", "--autotune", "-hostfile\nf\n-H\ng",
       "-hostfile\nf\npython", "--print-config\n--stall-check-w=3", "-h"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> args = Lines({reinterpret_cast<const char*>(data), size});
  auto line = Parse(args);
  auto again = Parse(args);
  hvd::Must(line.ok() == again.ok());
  if (line.ok()) {
    const bool counted = line->settings.num_proc >= 1 || CountComesFromHosts(line->settings);
    hvd::Must(line->action != hvd::Action::kRun || (counted && !line->command.empty()));
    hvd::Must(line->command == again->command);
  } else {
    hvd::Must(line.status().message() == again.status().message());
    hvd::Must(line.status().message().find('\n') == std::string::npos);
  }
  return 0;
}
