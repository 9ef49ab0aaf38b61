// The hosts of a run: asks this machine what discovery/host_selection.h wants to know.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "discovery/ask_all.h"
#include "discovery/host_selection.h"
#include "discovery/this_machine.h"
#include "launcher/output/output.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

// A name that is not resolved within it is taken for another machine's; its agent knows better
// (final_plan.h).
constexpr Duration kNameLimit = std::chrono::seconds(5);

WordFacts FactsOfWord(const std::string& word) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(word, ignored);
  return {is_file, is_file && IsThisMachine(word)};
}

}  // namespace

Status CheckIdentityFile(const Settings& settings) {
  const std::string& file = settings.ssh_identity_file;
  if (file.empty() || file[0] == '~' || ::access(file.c_str(), R_OK) == 0) return Status::Ok();
  return InvalidArgument(
      SystemError("-i " + Printable(file, kMaxShownPath) + " cannot be read", errno).message() +
      "; name a private key");
}

Result<std::vector<HostSlots>> HostsOf(const Settings& settings) {
  std::vector<std::string> notes;
  Result<std::vector<HostSlots>> hosts =
      SelectHosts(settings,
                  {[](const std::string& path) { return ReadFileWithin(path, {}); }, FactsOfWord,
                   [](const auto& names) { return NamesThat(names, IsThisMachine, kNameLimit); },
                   HostName, DefaultSlots},
                  notes);
  for (const std::string& note : notes) WriteAll(STDERR_FILENO, "hvdrun: " + note + "\n");
  return hosts;
}

}  // namespace hvd
