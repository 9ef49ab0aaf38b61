// The hosts of a run: collects the facts of this machine that discovery/host_selection.h needs.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "discovery/allocations/kubernetes_allocation.h"
#include "discovery/allocations/node_group.h"
#include "discovery/allocations/slurm_job.h"
#include "discovery/ask_all.h"
#include "discovery/host_selection.h"
#include "discovery/this_machine.h"
#include "launcher/elastic_hosts/make_host_watch.h"
#include "launcher/output/output.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/read_file.h"
#include "runtime/base/test_env.h"

namespace hvd {
namespace {

// A name that is not resolved within this time counts as another machine's; its agent will report
// the truth (final_plan.h).
constexpr Duration kNameLimit = std::chrono::seconds(5);

bool quiet = false;

WordFacts FactsOfWord(const std::string& word) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(word, ignored);
  return {is_file, is_file && IsThisMachine(word)};
}

// The name of a Slurm node need not be in DNS, nor that of a pod at its start.
bool IsThisNode(const std::string& name) {
  return name == GetEnv("SLURMD_NODENAME") ||
         IsThisPod(AllocationFactsHere({}), name, HostName()) || IsThisMachine(name);
}

SelectionFacts FactsOfThisMachine() {
  return {[](const std::string& path) { return ReadFileWithin(path, {}); }, FactsOfWord,
          [](const auto& names) { return NamesThat(names, IsThisNode, kNameLimit); }, HostName,
          DefaultSlots};
}

Result<std::vector<HostSlots>> HostsOfElastic(const Settings& settings) {
  Result<HostWatchMaker> make = HostWatchOf(settings, std::make_shared<LocalFamily>());
  if (!make.ok()) return make.status();
  asio::io_context io;
  HostAnswer answer = FirstAnswer(io, *(*make)(io));
  if (!answer.trouble.empty()) return InvalidArgument(answer.trouble);
  return std::move(answer.hosts);
}

}  // namespace

bool IsThisHost(const std::string& name) {
  return !NamesThat({name}, IsThisNode, kNameLimit).empty();
}

void SetQuiet() { quiet = true; }

void PrintNotes(const std::vector<std::string>& notes) {
  if (quiet) return;
  for (const std::string& note : notes) WriteAll(STDERR_FILENO, "hvdrun: " + note + "\n");
}

bool HostsComeLate(const Settings& settings) {
  if (settings.launcher == RemoteLauncher::kNodes) return true;
  for (const char* variable :
       {"KUBERNETES_SERVICE_HOST", "K_MPI_JOB_ROLE", "HVD_NODES", "PET_NNODES"}) {
    if (GetEnv(variable)) return true;
  }
  return false;
}

Status CheckIdentityFile(const Settings& settings) {
  const std::string& file = settings.ssh_identity_file;
  if (file.empty() || file[0] == '~' || ::access(file.c_str(), R_OK) == 0) return Status::Ok();
  return InvalidArgument(
      SystemError("-i " + Printable(file, kMaxShownPath) + " cannot be read", errno).message() +
      "; name a private key");
}

Result<HostWatchMaker> HostWatchOf(const Settings& given, std::shared_ptr<LocalFamily> family) {
  Settings settings = given;
  // The script of the MPI Operator prints names alone.
  if (settings.slots_per_host == 0 && !settings.host_discovery_script.empty())
    settings.slots_per_host =
        static_cast<int>(SlotsOfOperator(AllocationFactsHere(settings)).value_or(0));
  std::vector<std::string> notes;
  const SelectionFacts facts = FactsOfThisMachine();
  Result<HostWatchPlan> plan = PlanHostWatch(settings, facts, notes);
  PrintNotes(notes);
  if (!plan.ok()) return plan.status();
  HostWatchProcess process{Environment(), WorkingDirectory(), std::move(family), LogWarning};
  process.read_allocation = [job = settings.allocated_job, known = plan->specs](
                                const std::string& text, std::vector<std::string>&) {
    return ReadSlurmJob(text, job, known);
  };
  const auto pause =
      std::chrono::duration_cast<std::chrono::milliseconds>(process.allocation_pause);
  process.allocation_pause = std::chrono::milliseconds(
      TestNumber("HVD_TEST_ALLOCATION_MS", static_cast<int>(pause.count())));
  return HostWatchMaker([settings, plan = *plan, facts, process](asio::io_context& io) {
    return MakeHostWatch(io, settings, plan, facts, process);
  });
}

Result<std::vector<HostSlots>> HostsOf(const Settings& settings) {
  if (IsElastic(settings)) return HostsOfElastic(settings);
  std::vector<std::string> notes;
  Result<std::vector<HostSlots>> hosts = SelectHosts(settings, FactsOfThisMachine(), notes);
  PrintNotes(notes);
  return hosts;
}

}  // namespace hvd
