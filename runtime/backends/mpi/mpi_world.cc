#include "runtime/backends/mpi/mpi_world.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/backends/mpi/mpi_inter_host_comm.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr size_t kIdBytes = 16;

// Where a rank is, as that rank reports it.
struct Whereabouts {
  uint32_t first_on_host = 0;  // the lowest rank there
  uint32_t local_rank = 0;
  unsigned char id[kIdBytes] = {};  // counts for rank 0 only
};

class RequestActivity final : public Activity {
 public:
  RequestActivity(MPI_Request* request, std::string what, Duration remind)
      : request_(request), what_(std::move(what)), remind_(remind) {}
  Result<Turn> Step() override {
    int complete = 0;
    int code = MPI_Test(request_, &complete, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(what_, code);
    if (complete) return Turn::kDone;
    Remind();
    return Turn::kIdle;
  }
  std::string Waiting() const override {
    return what_ + " waits for ranks that have not come to hvd.init() yet or are gone";
  }

 private:
  void Remind() {
    const TimePoint now = SteadyNow();
    if (now - last_reminder_ < remind_) return;
    last_reminder_ = now;
    LogWarning(Waiting());
  }

  MPI_Request* request_;
  std::string what_;
  const Duration remind_;
  TimePoint last_reminder_ = SteadyNow();
};

// The number of ranks according to the launcher; nothing if no MPI launcher tells.
std::optional<int> LaunchedRanks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto number = ParseWhole<int>(GetEnv(name).value_or(""))) return number;
  }
  return std::nullopt;
}

// An mpirun of one MPI with a library of another makes as many worlds of one as there are
// processes.
Status CheckSize(int size, uint32_t expected) {
  std::optional<int> launched =
      expected != 0 ? std::optional(static_cast<int>(expected)) : LaunchedRanks();
  if (!launched || *launched == size) return Status::Ok();
  return Unsupported(Format(
      "the launcher started {0} ranks, but {1}, which libhvd_mpi.so was built with, sees {2}, "
      "because the launcher is of another MPI, or of none; start the job with the mpirun of "
      "{1}, or with hvdrun --mpi, or leave HOROVOD_CONTROLLER and HOROVOD_CPU_OPERATIONS "
      "unset: ranks of one host meet without MPI",
      *launched, kMpiName, size));
}

}  // namespace

Result<std::unique_ptr<JoinedWorld>> JoinedWorld::Join(const MpiJoinOptions& options) {
  Result<MpiLibrary*> library =
      MpiLibrary::Start(options.comm != nullptr, options.one_thread, options.before_finalize);
  if (!library.ok()) return library.status();
  std::unique_ptr<JoinedWorld> world(new JoinedWorld(**library, options.remind));
  HVD_RETURN_IF_ERROR(world->Open(options));
  return world;
}

Status JoinedWorld::Open(const MpiJoinOptions& options) {
  MPI_Comm base = MPI_COMM_WORLD;
  if (options.comm != nullptr) std::memcpy(&base, options.comm, sizeof(MPI_Comm));
  if (base == MPI_COMM_NULL) {
    return InvalidArgument(
        "the communicator given to hvd.init() is MPI_COMM_NULL, because this process is not in it; "
        "call hvd.init(comm=...) on its members only");
  }
  int launched = 1, inter = 0;
  library_.Run([&] {
    MPI_Comm_test_inter(base, &inter);
    MPI_Comm_size(MPI_COMM_WORLD, &launched);
  });
  if (inter != 0) {
    return InvalidArgument(
        "the communicator given to hvd.init() is an intercommunicator; merge it first "
        "(MPI_Intercomm_merge), a world has one row of ranks");
  }
  HVD_RETURN_IF_ERROR(CheckSize(launched, options.launched));
  if (!options.ranks.empty()) {
    if (Status status = ChooseRanks(options.ranks, &base); !status.ok()) return status;
  }
  int rank = 0, size = 1;
  library_.Run([&] {
    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
  });
  rank_ = static_cast<uint32_t>(rank);
  size_ = static_cast<uint32_t>(size);
  for (auto [from, to] : {std::pair(&base, &data_), std::pair(&data_, &mail_)}) {
    auto begin = [&](MPI_Request* request) { return MPI_Comm_idup(*from, to, request); };
    Status status = Complete("duplicating the communicator", options.deadline, begin);
    if (!status.ok()) return status;
    library_.Run([&] { MPI_Comm_set_errhandler(*to, MPI_ERRORS_RETURN); });
  }
  return FindPlaces(options.deadline);
}

// The only thing here for which MPI has no non-blocking call.
Status JoinedWorld::ChooseRanks(std::span<const uint32_t> ranks, MPI_Comm* chosen) {
  constexpr int kTag = 0x4876;
  int rank = 0, size = 0, code = MPI_SUCCESS;
  library_.Run([&] {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  });
  const std::string who = Format("hvd.init() on rank {} of {}", rank, size);
  const auto own = static_cast<uint32_t>(rank);
  if (ranks.back() >= static_cast<uint32_t>(size)) {
    return InvalidArgument(
        Format("{} was given a world with rank {}, which there is not", who, ranks.back()));
  }
  if (std::find(ranks.begin(), ranks.end(), own) == ranks.end()) {
    return InvalidArgument(who +
                           " was given a world without this rank; each rank names the ranks "
                           "of its own world");
  }
  const std::vector<int> members(ranks.begin(), ranks.end());
  library_.Run([&] {
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
    code = MPI_Comm_create_group(MPI_COMM_WORLD, some, kTag, chosen);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
  });
  return code == MPI_SUCCESS ? Status::Ok() : MpiError("making a world of some ranks", code);
}

// MPI knows who can share memory, but only through a blocking call: a non-blocking barrier first
// makes sure that all ranks are there.
Status JoinedWorld::FindPlaces(TimePoint deadline) {
  Status status = Complete("the first barrier", deadline,
                           [&](MPI_Request* request) { return MPI_Ibarrier(data_, request); });
  if (!status.ok()) return status;
  Whereabouts own;
  int code = MPI_SUCCESS;
  library_.Run([&] {
    MPI_Comm host = MPI_COMM_NULL;
    int local_rank = 0;
    code = MPI_Comm_split_type(data_, MPI_COMM_TYPE_SHARED, static_cast<int>(rank_), MPI_INFO_NULL,
                               &host);
    if (code != MPI_SUCCESS) return;
    MPI_Comm_rank(host, &local_rank);
    own.local_rank = static_cast<uint32_t>(local_rank);
    own.first_on_host = rank_;
    MPI_Bcast(&own.first_on_host, 1, MPI_UINT32_T, 0, host);
    MPI_Comm_free(&host);
  });
  if (code != MPI_SUCCESS) return MpiError("finding the ranks of this host", code);
  if (::getrandom(own.id, sizeof(own.id), 0) != sizeof(own.id)) {
    return Internal("the kernel gave no random bytes for the id of the world");
  }
  std::vector<std::byte> all;
  status = GatherBlocks(&own, sizeof(own), &all, deadline);
  if (!status.ok()) return status;
  std::map<uint32_t, uint32_t> hosts;  // by their first rank
  for (uint32_t r = 0; r < size_; ++r) {
    Whereabouts one;
    std::memcpy(&one, all.data() + r * sizeof(one), sizeof(one));
    if (r == 0)
      id_ = HexOf(std::string_view(reinterpret_cast<const char*>(one.id), sizeof(one.id)));
    uint32_t host =
        hosts.emplace(one.first_on_host, static_cast<uint32_t>(hosts.size())).first->second;
    places_.push_back({host, one.local_rank});
  }
  return Status::Ok();
}

Status JoinedWorld::Complete(const char* what, TimePoint deadline,
                             const std::function<int(MPI_Request*)>& begin) {
  // MPI writes to the request until it is complete, so it outlives a wait that timed out.
  auto buffer = std::make_unique<std::byte[]>(sizeof(MPI_Request));
  auto* request = new (buffer.get()) MPI_Request(MPI_REQUEST_NULL);
  int code = MPI_SUCCESS;
  library_.Run([&] { code = begin(request); });
  if (code != MPI_SUCCESS) return MpiError(what, code);
  const std::string who = Format("rank {} of {} over MPI: ", rank_, size_);
  RequestActivity activity(request, who + what, remind_);
  Status status = library_.Drive(activity, deadline);
  if (status.ok()) return status;
  library_.GiveUpOn(std::move(buffer), what);
  return status;
}

Status JoinedWorld::GatherBlocks(const void* own, size_t bytes, std::vector<std::byte>* all,
                                 TimePoint deadline) {
  all->resize(size_ * bytes);
  if (bytes == 0) return Status::Ok();
  auto memory = std::make_unique_for_overwrite<std::byte[]>((size_ + 1) * bytes);
  std::memcpy(memory.get(), own, bytes);
  int count = static_cast<int>(bytes);
  Status status = Complete("an exchange of values", deadline, [&](MPI_Request* request) {
    return MPI_Iallgather(memory.get(), count, MPI_BYTE, memory.get() + bytes, count, MPI_BYTE,
                          data_, request);
  });
  if (!status.ok()) {
    library_.GiveUpOn(std::move(memory), "an exchange of values");
    return status;
  }
  std::memcpy(all->data(), memory.get() + bytes, all->size());
  return status;
}

Result<std::vector<std::string>> JoinedWorld::Exchange(const std::string& value,
                                                       TimePoint deadline) {
  if (value.size() > kMaxMpiValue) {
    return InvalidArgument(
        Format("a value exchanged over MPI has at most {} bytes; this one has {}", kMaxMpiValue,
               value.size()));
  }
  uint64_t length = value.size();
  std::vector<std::byte> lengths, blocks;
  Status status = GatherBlocks(&length, sizeof(length), &lengths, deadline);
  if (!status.ok()) return status;
  std::vector<uint64_t> sizes(size_);
  std::memcpy(sizes.data(), lengths.data(), lengths.size());
  size_t most = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = value;
  padded.resize(most);
  status = GatherBlocks(padded.data(), most, &blocks, deadline);
  if (!status.ok()) return status;
  std::vector<std::string> values;
  for (uint32_t r = 0; r < size_; ++r) {
    values.emplace_back(reinterpret_cast<const char*>(blocks.data()) + r * most, sizes[r]);
  }
  return values;
}

Result<std::unique_ptr<InterHostComm>> JoinedWorld::OpenInterHostComm() {
  std::set<uint32_t> firsts;
  for (uint32_t r = 0; places_[rank_].local_rank == 0 && r < size_; ++r) {
    if (places_[r].local_rank == 0) firsts.insert(r);
  }
  auto inter_host =
      std::make_unique<MpiInterHostComm>(library_, data_, mail_, rank_, std::move(firsts));
  HVD_RETURN_IF_ERROR(inter_host->Open());
  return std::unique_ptr<InterHostComm>(std::move(inter_host));
}

}  // namespace hvd
