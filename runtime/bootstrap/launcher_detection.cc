#include "runtime/bootstrap/launcher_detection.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

// Steps without an srun: the shell of sbatch, of an interactive salloc, and similar ones.
constexpr uint32_t kFirstSpecialStep = 0xfffffff0;

// "3,1" or "2(x3),1": the tasks of one node of a step.
std::optional<uint32_t> TasksOfNode(std::string_view list, uint32_t node) {
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    size_t times = entry.find("(x");
    std::optional<uint32_t> tasks = ParseWhole<uint32_t>(entry.substr(0, times));
    std::optional<uint32_t> nodes = 1;
    if (times != std::string_view::npos) {
      if (!entry.ends_with(')')) return std::nullopt;
      nodes = ParseWhole<uint32_t>(entry.substr(times + 2, entry.size() - times - 3));
    }
    if (!tasks || !nodes) return std::nullopt;
    if (node < *nodes) return tasks;
    node -= *nodes;
  }
  return std::nullopt;
}

// The variables of one launcher.
struct LauncherEnv {
  const char* launcher;
  const char *rank, *size, *local_rank, *local_size;
};
constexpr LauncherEnv kHorovod = {"its launcher", "HOROVOD_RANK", "HOROVOD_SIZE",
                                  "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"};
constexpr LauncherEnv kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr LauncherEnv kPmi = {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                              "MPI_LOCALNRANKS"};
// Every launcher that follows torch.distributed's conventions sets these; torchrun also sets its
// run id.
constexpr LauncherEnv kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                   "LOCAL_WORLD_SIZE"};
constexpr const char* kTorchrunRun = "TORCHELASTIC_RUN_ID";
constexpr const char* kStoreAddress = "HOROVOD_GLOO_RENDEZVOUS_ADDR";
constexpr const char* kStorePort = "HOROVOD_GLOO_RENDEZVOUS_PORT";

// The carrier that the user requests for the world.
enum class Carrier { kAny, kGloo, kMpi };

class Chooser {
 public:
  explicit Chooser(const EnvLookup& env) : env_(env) {}

  Result<DetectedLaunch> Choose();

 private:
  std::optional<std::string> Text(const char* name) const {
    std::optional<std::string> value = env_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  bool Has(const char* name) const { return Text(name).has_value(); }
  bool Speaks(const LauncherEnv& d) const { return Has(d.rank) || Has(d.size); }
  bool InSlurmStep() const;

  Result<uint32_t> Number(const char* name, const char* other) const;
  Result<DetectedLaunch> Hvdrun(std::string agent) const;
  // Rank and size, and where it is on its host unless the size is 1.
  Result<ExternalRank> Read(const LauncherEnv& d) const;
  Result<ExternalRank> ReadSlurm() const;
  Result<ExternalRank> ReadTorchrun() const;
  Status CheckSame(const ExternalRank& chosen, const LauncherEnv& other) const;
  bool NamesStore() const { return Has(kStoreAddress) || Has(kStorePort); }
  Status SetStore(ExternalRank* rank) const;
  // Nothing else shows where the ranks on other hosts are.
  bool NeedsMpi(const ExternalRank& r) const {
    return carrier_ == Carrier::kAny && r.local_size < r.size && !NamesStore();
  }
  Result<Carrier> ReadCarrier(const char* name) const;
  Status SetCarrier();
  Result<DetectedLaunch> Complete(Result<ExternalRank> rank) const;
  Result<DetectedLaunch> NoLauncher() const;

  const EnvLookup& env_;
  Carrier carrier_ = Carrier::kAny;
};

// One number of a group of variables; `other` is one that is set, for the error message.
Result<uint32_t> Chooser::Number(const char* name, const char* other) const {
  std::optional<std::string> text = Text(name);
  if (!text) {
    return InvalidArgument(std::string(other) + " is set and " + name +
                           " is not, so this process does not know its place; set both, or unset "
                           "both for a world of one");
  }
  std::optional<uint32_t> value = ParseWhole<uint32_t>(*text);
  if (value) return *value;
  return InvalidArgument(std::string(name) + "=" + Printable(*text) +
                         " is not a number; was it changed by a script?");
}

Result<DetectedLaunch> Chooser::Hvdrun(std::string agent) const {
  AgentAddress address;
  address.name = std::move(agent);
  Result<uint32_t> slot = Number("HVD_SLOT", "HVD_AGENT");
  if (!slot.ok()) return slot.status();
  address.slot = *slot;
  address.job_key = Text("HVD_JOB_KEY").value_or("");
  address.size = ParseWhole<uint32_t>(Text("HOROVOD_SIZE").value_or("")).value_or(0);
  return DetectedLaunch(std::move(address));
}

Result<ExternalRank> Chooser::Read(const LauncherEnv& d) const {
  ExternalRank r;
  r.launcher = d.launcher;
  struct Field {
    const char *name, *other;
    uint32_t* value;
  };
  for (const Field& field :
       {Field{d.rank, d.size, &r.rank}, Field{d.size, d.rank, &r.size},
        Field{d.local_rank, d.rank, &r.local_rank}, Field{d.local_size, d.rank, &r.local_size}}) {
    if (r.size == 1 && field.value == &r.local_rank) return r;
    Result<uint32_t> number = Number(field.name, field.other);
    if (!number.ok()) return number.status();
    *field.value = *number;
  }
  return r;
}

bool Chooser::InSlurmStep() const {
  std::optional<std::string> step = Text("SLURM_STEP_ID");
  if (!step) step = Text("SLURM_STEPID");
  std::optional<uint32_t> number = ParseWhole<uint32_t>(step.value_or(""));
  return number && *number < kFirstSpecialStep && Has("SLURM_PROCID");
}

Result<ExternalRank> Chooser::ReadSlurm() const {
  const char* tasks = Has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Result<ExternalRank> r = Read({"srun", "SLURM_PROCID", tasks, "SLURM_LOCALID", "SLURM_NODEID"});
  if (!r.ok() || r->size == 1) return r;
  std::string list = Text("SLURM_STEP_TASKS_PER_NODE").value_or("");
  // Read stored the number of the node there.
  std::optional<uint32_t> local_size = TasksOfNode(list, r->local_size);
  if (!local_size) {
    return InvalidArgument(
        Format("SLURM_STEP_TASKS_PER_NODE={} does not tell how many tasks node {} of the step has; "
               "was it changed by a script?",
               Printable(list, kMaxShownPath), r->local_size));
  }
  r->local_size = *local_size;
  r->host = Text("SLURMD_NODENAME").value_or("");
  r->job = "slurm " + Text("SLURM_CLUSTER_NAME").value_or("") + " " +
           Text("SLURM_JOB_ID").value_or(Text("SLURM_JOBID").value_or("")) + "." +
           Text("SLURM_STEP_ID").value_or(Text("SLURM_STEPID").value_or(""));
  return r;
}

Result<ExternalRank> Chooser::ReadTorchrun() const {
  Result<ExternalRank> r = Read(kTorchrun);
  if (!r.ok()) return r;
  r->job =
      Format("torchrun {} {}:{} {}", *Text(kTorchrunRun), Text("MASTER_ADDR").value_or(""),
             Text("MASTER_PORT").value_or(""), Text("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return r;
}

// Horovod's variables have precedence; but a process with two different ranks belongs to no
// launcher.
Status Chooser::CheckSame(const ExternalRank& chosen, const LauncherEnv& other) const {
  if (!Speaks(other)) return Status::Ok();
  Result<ExternalRank> also = Read(other);
  if (!also.ok()) return also.status();
  if (also->rank == chosen.rank && also->size == chosen.size) return Status::Ok();
  auto place = [](const ExternalRank& r) { return Format("{} of {}", r.rank, r.size); };
  return InvalidArgument("HOROVOD_RANK and HOROVOD_SIZE say that this process is rank " +
                         place(chosen) + ", " + other.rank + " and " + other.size +
                         " that it is rank " + place(*also) +
                         "; unset those that were left over from another launcher");
}

Status Chooser::SetStore(ExternalRank* rank) const {
  if (!NamesStore()) return Status::Ok();
  Result<uint32_t> port = Number(kStorePort, kStoreAddress);
  if (!port.ok()) return port.status();
  if (!Has(kStoreAddress)) {
    return InvalidArgument(std::string(kStorePort) + " is set and " + kStoreAddress +
                           " is not; set both, or neither when all ranks are on one host");
  }
  if (*port == 0 || *port > 65535)
    return InvalidArgument(Format("{}={} is no port", kStorePort, *port));
  rank->store = Format("{}:{}", *Text(kStoreAddress), *port);
  return Status::Ok();
}

Result<Carrier> Chooser::ReadCarrier(const char* name) const {
  std::string text = Text(name).value_or("");
  std::string small = text;
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  if (small.empty()) return Carrier::kAny;
  if (small == "gloo") return Carrier::kGloo;
  if (small == "mpi") return Carrier::kMpi;
  return InvalidArgument("the environment variable " + std::string(name) + " is " + Quoted(text) +
                         ", which is neither mpi nor gloo; set it to one " + "or unset it");
}

Status Chooser::SetCarrier() {
  constexpr const char *kController = "HOROVOD_CONTROLLER", *kOperations = "HOROVOD_CPU_OPERATIONS";
  Result<Carrier> controller = ReadCarrier(kController), operations = ReadCarrier(kOperations);
  if (!controller.ok()) return controller.status();
  if (!operations.ok()) return operations.status();
  const bool differ = *controller != Carrier::kAny && *operations != Carrier::kAny;
  if (differ && *controller != *operations) {
    return InvalidArgument(std::string(kController) + "=" + *Text(kController) + " and " +
                           kOperations + "=" + *Text(kOperations) +
                           " contradict each other; set both to mpi, both to gloo, or neither");
  }
  carrier_ = *controller != Carrier::kAny ? *controller : *operations;
  return Status::Ok();
}

// MPI may know of ranks that the environment does not show.
Result<DetectedLaunch> Chooser::NoLauncher() const {
  if (carrier_ != Carrier::kMpi) return DetectedLaunch(Standalone{});
  ExternalRank rank;
  rank.launcher = "MPI";
  rank.size = 0;
  rank.over_mpi = true;
  return DetectedLaunch(std::move(rank));
}

Result<DetectedLaunch> Chooser::Complete(Result<ExternalRank> read) const {
  if (!read.ok()) return read.status();
  ExternalRank& r = *read;
  r.over_mpi |= carrier_ == Carrier::kMpi;
  if (r.size == 1 && r.rank == 0 && !r.over_mpi) return DetectedLaunch(Standalone{});
  std::string who = Format("{} says that this process is rank {} of {}, local rank {} of {}",
                           r.launcher, r.rank, r.size, r.local_rank, r.local_size);
  if (r.rank >= r.size || r.local_rank >= r.local_size || r.local_size > r.size)
    return InvalidArgument(who + ", which cannot be; were its variables changed by a script?");
  if (Text("HOROVOD_ELASTIC").value_or("0") == "1") {
    return Unsupported(
        who +
        ", and HOROVOD_ELASTIC=1 is set: ranks that hvdrun did not start form a world of a "
        "fixed size; unset HOROVOD_ELASTIC to run with the ranks that are there, or start the job "
        "with hvdrun --elastic");
  }
  HVD_RETURN_IF_ERROR(SetStore(&r));
  if (r.local_size < r.size && r.store.empty() && !r.over_mpi) {
    return InvalidArgument(
        who +
        ", so the world spans several hosts, and there is no key-value server by which they could "
        "find each other; start the job with hvdrun, set HOROVOD_GLOO_RENDEZVOUS_ADDR and "
        "HOROVOD_GLOO_RENDEZVOUS_PORT to one, or let the ranks meet by MPI: mpirun of Open MPI or "
        "srun --mpi=pmix, and HOROVOD_CONTROLLER unset or mpi");
  }
  return DetectedLaunch(std::move(r));
}

Result<DetectedLaunch> Chooser::Choose() {
  if (std::optional<std::string> agent = Text("HVD_AGENT")) return Hvdrun(std::move(*agent));
  HVD_RETURN_IF_ERROR(SetCarrier());
  if (Speaks(kHorovod)) {
    Result<ExternalRank> r = Read(kHorovod);
    if (!r.ok() || r->size == 1) return Complete(std::move(r));
    HVD_RETURN_IF_ERROR(CheckSame(*r, kOpenMpi));
    HVD_RETURN_IF_ERROR(SetStore(&*r));
    r->host = Text("HOROVOD_HOSTNAME").value_or("");
    std::string job = Text("HVD_JOB").value_or("");
    if (job.empty() && r->store.empty() && carrier_ != Carrier::kMpi) {
      return InvalidArgument(
          Format("HOROVOD_SIZE says that this process is one of {} ranks, but not how it finds the "
                 "others: HOROVOD_GLOO_RENDEZVOUS_ADDR and HOROVOD_GLOO_RENDEZVOUS_PORT are not "
                 "set; set them, or on one host HVD_JOB to a name that all ranks of this job "
                 "share, or start the job with hvdrun",
                 r->size));
    }
    r->job = "horovod " + job + " " + r->store;
    return Complete(std::move(r));
  }
  // mpirun or srun may have started one torchrun on each host.
  if (Has(kTorchrunRun) && Has("RANK")) return Complete(ReadTorchrun());
  if (Speaks(kOpenMpi)) {
    Result<ExternalRank> r = Read(kOpenMpi);
    // The address of this host's daemon distinguishes two mpiruns with the same namespace.
    if (r.ok()) {
      r->job = "openmpi " + Text("PMIX_NAMESPACE").value_or("") + " " +
               Text("PMIX_SERVER_URI2").value_or(Text("OMPI_MCA_orte_hnp_uri").value_or(""));
      r->over_mpi = NeedsMpi(*r);
    }
    return Complete(std::move(r));
  }
  if (InSlurmStep()) {
    Result<ExternalRank> r = ReadSlurm();
    // srun --mpi=pmix: without it MPI would end this process.
    if (r.ok() && Has("PMIX_RANK")) r->over_mpi = NeedsMpi(*r);
    return Complete(std::move(r));
  }
  if (Speaks(kPmi)) return Complete(Read(kPmi));
  return NoLauncher();
}

}  // namespace

Result<DetectedLaunch> DetectLaunch(const EnvLookup& env) { return Chooser(env).Choose(); }

}  // namespace hvd
