// The launcher of a job over MPI: finds mpirun, detects the MPI, and makes its command; or that of
// jsrun and its file.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/external/mpi/ask_program.h"
#include "launcher/external/mpi/mpi_command.h"
#include "launcher/external/mpi/mpi_flavor.h"
#include "launcher/output/output.h"
#include "launcher/process/spawn.h"
#include "runtime/base/env.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr Duration kAnswerLimit = std::chrono::seconds(10);

Result<MpiVersion> AskVersion(const std::string& program,
                              const std::shared_ptr<LocalFamily>& family) {
  const std::string shown = Printable(program, kMaxShownPath);
  const Result<std::string> answer = AskProgram({program, "--version"}, family, kAnswerLimit);
  if (!answer.ok())
    return InvalidArgument("--mpi: " + shown + " --version " + answer.status().message());
  const std::optional<MpiVersion> version = ReadMpiVersion(*answer);
  if (version) return *version;
  return InvalidArgument("--mpi: " + shown + " says '" + Printable(*answer) +
                         "' of itself, which is none of Open MPI, Spectrum MPI, MPICH and Intel "
                         "MPI; put one of these first on PATH");
}

// Reports arguments of the user's that this mpirun does not know before anything starts. Intel
// MPI's mpirun is a script and cannot be checked.
Status CheckArguments(const std::string& program, const MpiVersion& version,
                      const Settings& settings, const std::shared_ptr<LocalFamily>& family) {
  std::vector<std::string> command = {program};
  if (version.flavor == MpiFlavor::kOpenMpi) command.emplace_back("--allow-run-as-root");
  const size_t none = command.size();
  for (const auto& [setting, text] : {std::pair("--mpi-args", settings.mpi_args),
                                      std::pair("--binding-args", settings.binding_args)}) {
    Result<std::vector<std::string>> words = SplitMpiArgs(setting, text);
    if (!words.ok()) return words.status();
    command.insert(command.end(), words->begin(), words->end());
  }
  if (command.size() == none || version.flavor == MpiFlavor::kIntel) return Status::Ok();
  command.emplace_back("--version");
  const Result<std::string> answer = AskProgram(command, family, kAnswerLimit);
  const std::string unknown = answer.ok() ? UnknownArgument(*answer) : "";
  if (unknown.empty()) return Status::Ok();
  return InvalidArgument("--mpi: the mpirun of " + version.name + " does not know " +
                         Quoted(unknown) + "; leave it out of --mpi-args and --binding-args");
}

// The command that starts for each rank. All hosts have hvdrun at the same path.
std::vector<std::string> ProcessOf(const std::string& job_id, uint32_t hosts) {
  return {OwnPath(), "worker", "--job", job_id, "--hosts", std::to_string(hosts)};
}

Result<LauncherMaker> Mpirun(const DriverOptions& options,
                             const std::shared_ptr<LocalFamily>& family) {
  const std::string program = MpirunOnPath();
  if (program.empty())
    return InvalidArgument(
        "--mpi: there is no mpirun on PATH; install Open MPI or MPICH, load its module, or leave "
        "--mpi out: hvdrun starts the ranks itself then");
  Result<MpiVersion> version = AskVersion(program, family);
  if (!version.ok()) return version.status();
  HVD_RETURN_IF_ERROR(CheckArguments(program, *version, options.settings, family));
  const auto command = [program, version = *version, settings = options.settings,
                        job_id = options.job_id](const Plan& plan) {
    return MpiCommand(program, version, plan, settings,
                      ProcessOf(job_id, static_cast<uint32_t>(plan.hosts.size())));
  };
  if (Result<std::vector<std::string>> draft = command(options.plan); !draft.ok())
    return draft.status();
  return LauncherMaker(
      [command, family](asio::io_context& io, const Plan& plan, const std::vector<uint32_t>&,
                        LauncherRun::OnOver on_over) -> Result<std::unique_ptr<LauncherRun>> {
        Result<std::vector<std::string>> words = command(plan);
        if (!words.ok()) return words.status();
        return std::make_unique<LauncherRun>(io, std::move(*words), family, std::move(on_over));
      });
}

// A file for its owner only, removed with the last reference.
class TemporaryFile {
 public:
  static Result<std::shared_ptr<TemporaryFile>> Write(const std::string& text) {
    std::string path = GetEnv("TMPDIR").value_or("/tmp") + "/hvdrun-erf.XXXXXX";
    const UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
    if (fd.valid() && WriteAll(fd.get(), text)) return std::make_shared<TemporaryFile>(path);
    return SystemError("the file " + path + " for jsrun cannot be written", errno);
  }
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Result<LauncherMaker> Jsrun(const DriverOptions& options,
                            const std::shared_ptr<LocalFamily>& family) {
  const FoundProgram found =
      FindProgram("jsrun", GetEnv("PATH").value_or(kDefaultPath), WorkingDirectory());
  if (found.path.empty())
    return InvalidArgument(
        "--jsrun: there is no jsrun on PATH; it belongs to LSF of IBM; without --jsrun hvdrun "
        "starts the ranks itself");
  if (Result<std::vector<std::string>> draft = JsrunCommand(found.path, "", options.settings, {});
      !draft.ok())
    return draft.status();
  return LauncherMaker(
      [program = found.path, settings = options.settings, job_id = options.job_id, family](
          asio::io_context& io, const Plan& plan, const std::vector<uint32_t>& cpus,
          LauncherRun::OnOver on_over) -> Result<std::unique_ptr<LauncherRun>> {
        auto file = TemporaryFile::Write(ResourceFile(plan, cpus));
        if (!file.ok()) return file.status();
        Result<std::vector<std::string>> words =
            JsrunCommand(program, (*file)->path(), settings,
                         ProcessOf(job_id, static_cast<uint32_t>(plan.hosts.size())));
        if (!words.ok()) return words.status();
        // jsrun reads the file when it starts; it is removed once jsrun has ended.
        auto over = [file = *file, on_over = std::move(on_over)](const LauncherEnd& end) {
          on_over(end);
        };
        return std::make_unique<LauncherRun>(io, std::move(*words), family, std::move(over));
      });
}

}  // namespace

std::string MpirunOnPath() {
  return FindProgram("mpirun", GetEnv("PATH").value_or(kDefaultPath), WorkingDirectory()).path;
}

Result<LauncherMaker> RankLauncherFor(const DriverOptions& options,
                                      const std::shared_ptr<LocalFamily>& family) {
  const std::string launcher = RankLauncherOf(options.settings);
  if (launcher.empty()) return LauncherMaker();
  if (options.settings.hosts_per_machine > 1)
    return InvalidArgument("--mpi and --hosts-per-machine exclude each other: " + launcher +
                           " knows this machine as one host");
  if (options.settings.stock_horovod)
    return InvalidArgument(
        "--mpi and --stock-horovod exclude each other: workers of stock Horovod meet at hvdrun's "
        "rendezvous; leave one of the two out");
  return launcher == "mpirun" ? Mpirun(options, family) : Jsrun(options, family);
}

}  // namespace hvd
