#include "test/fakes/nccl/fake_nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "test/fakes/element_values.h"
#include "test/fakes/nccl/fake_nccl_data.h"

namespace hvd::test {
namespace {

constexpr NcclReduceOp kFirstOwnOperation = 5;

uint64_t AddressOf(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

bool IsPairCall(const NcclCall& call) {
  return call.kind == NcclCallKind::kSend || call.kind == NcclCallKind::kRecv;
}

// ---- NCCL's functions, in the order of HVD_NCCL_CALLS

#define HVD_FAKE_NCCL_ENTER(symbol)                       \
  FakeNccl& fake = FakeNccl::It();                        \
  std::lock_guard<std::recursive_mutex> lock(fake.mutex); \
  if (NcclResult ordered = fake.Enter(symbol); ordered != 0) return ordered
#define HVD_FAKE_NCCL_ENTER_FOR(symbol, comm)             \
  FakeNccl& fake = FakeNccl::It();                        \
  std::lock_guard<std::recursive_mutex> lock(fake.mutex); \
  if (NcclResult ordered = fake.Enter(symbol, comm); ordered != 0) return ordered
#define HVD_FAKE_NCCL_ENTER_WITH(symbol, comm) \
  HVD_FAKE_NCCL_ENTER_FOR(symbol, comm);       \
  if (!fake.Alive(symbol, comm)) return kNcclInvalidArgument

NcclResult GetVersion(int* version) {
  HVD_FAKE_NCCL_ENTER("ncclGetVersion");
  *version = fake.version;
  return kNcclSuccess;
}
NcclResult GetUniqueId(NcclUniqueId* id) {
  HVD_FAKE_NCCL_ENTER("ncclGetUniqueId");
  *id = {};
  const std::string text = "unique " + std::to_string(fake.Count("ncclGetUniqueId"));
  std::memcpy(id->bytes, text.data(), text.size());
  id->bytes[127] = static_cast<char>(0xfe);
  return kNcclSuccess;
}
NcclResult CommInitRankConfig(NcclCommHandle* comm, int ranks, NcclUniqueId id, int rank,
                              NcclConfig* config) {
  HVD_FAKE_NCCL_ENTER("ncclCommInitRankConfig");
  if (config == nullptr || config->blocking != 0) fake.Complain("a start that blocks");
  if (FakeCuda::It().CurrentContexts() == 0) fake.Complain("a start without a current context");
  return fake.Init(comm, ranks, id, rank);
}
NcclResult CommGetAsyncError(NcclCommHandle comm, NcclResult* error) {
  HVD_FAKE_NCCL_ENTER_WITH("ncclCommGetAsyncError", comm);
  const NcclResult later = fake.Enter(FakeNccl::kAsyncError, comm);
  *error = later == kNcclSuccess ? fake.Ask(comm) : later;
  return kNcclSuccess;
}
NcclResult CommFinalize(NcclCommHandle comm) {
  HVD_FAKE_NCCL_ENTER_FOR("ncclCommFinalize", comm);
  if (!fake.Ready("ncclCommFinalize", comm)) return kNcclInvalidUsage;
  if (!comm->operations.empty()) fake.Complain("ncclCommFinalize with operations left");
  if (!comm->registered.empty()) fake.Complain("ncclCommFinalize with registered memory");
  fake.CheckNoGraph("ncclCommFinalize", comm);
  comm->finalized = true;
  return kNcclInProgress;
}
NcclResult CommDestroy(NcclCommHandle comm) {
  FakeNccl& fake = FakeNccl::It();
  std::lock_guard<std::recursive_mutex> lock(fake.mutex);
  if (!fake.Alive("ncclCommDestroy", comm)) return kNcclInvalidArgument;
  if (!comm->finalized || fake.Ask(comm) != kNcclSuccess) {
    fake.Complain("ncclCommDestroy before the end");
  }
  fake.End(comm, false);  // also where an error is ordered: NCCL frees what it can
  return fake.Enter("ncclCommDestroy");
}
NcclResult CommAbort(NcclCommHandle comm) {
  FakeNccl& fake = FakeNccl::It();
  std::unique_lock<std::recursive_mutex> lock(fake.mutex);
  const bool alive = fake.Alive("ncclCommAbort", comm);
  if (alive) fake.CheckNoGraph("ncclCommAbort", comm);
  if (alive) fake.End(comm, true);  // also where an error is ordered: NCCL frees what it can
  if (alive && fake.aborts_wait) fake.AwaitIdle(comm, lock);
  fake.unhung.wait(lock, [&fake] { return !fake.aborts_hang; });
  if (NcclResult ordered = fake.Enter("ncclCommAbort"); ordered != 0) return ordered;
  return alive ? kNcclSuccess : kNcclInvalidArgument;
}
NcclResult GroupStart() {
  HVD_FAKE_NCCL_ENTER("ncclGroupStart");
  fake.group_depth[std::this_thread::get_id()] += 1;
  return kNcclSuccess;
}
NcclResult GroupEnd() {
  FakeNccl& fake = FakeNccl::It();
  std::lock_guard<std::recursive_mutex> lock(fake.mutex);
  return fake.GroupEnd();
}
NcclResult AllReduce(const void* from, void* to, size_t count, NcclDataType type, NcclReduceOp op,
                     NcclCommHandle comm, CuStream stream) {
  return FakeNccl::It().Call("ncclAllReduce",
                             {.kind = NcclCallKind::kAllReduce,
                              .from = AddressOf(from),
                              .to = AddressOf(to),
                              .count = count,
                              .type = type,
                              .op = op},
                             comm, stream);
}
NcclResult ReduceToRoot(const void* from, void* to, size_t count, NcclDataType type,
                        NcclReduceOp op, int root, NcclCommHandle comm, CuStream stream) {
  return FakeNccl::It().Call("ncclReduce",
                             {.kind = NcclCallKind::kReduce,
                              .from = AddressOf(from),
                              .to = AddressOf(to),
                              .count = count,
                              .type = type,
                              .op = op,
                              .peer = root},
                             comm, stream);
}
NcclResult Broadcast(const void* from, void* to, size_t count, NcclDataType type, int root,
                     NcclCommHandle comm, CuStream stream) {
  return FakeNccl::It().Call("ncclBroadcast",
                             {.kind = NcclCallKind::kBroadcast,
                              .from = AddressOf(from),
                              .to = AddressOf(to),
                              .count = count,
                              .type = type,
                              .peer = root},
                             comm, stream);
}
NcclResult AllGather(const void* from, void* to, size_t count, NcclDataType type,
                     NcclCommHandle comm, CuStream stream) {
  return FakeNccl::It().Call("ncclAllGather",
                             {.kind = NcclCallKind::kAllGather,
                              .from = AddressOf(from),
                              .to = AddressOf(to),
                              .count = count,
                              .type = type},
                             comm, stream);
}
NcclResult ReduceScatter(const void* from, void* to, size_t count, NcclDataType type,
                         NcclReduceOp op, NcclCommHandle comm, CuStream stream) {
  return FakeNccl::It().Call("ncclReduceScatter",
                             {.kind = NcclCallKind::kReduceScatter,
                              .from = AddressOf(from),
                              .to = AddressOf(to),
                              .count = count,
                              .type = type,
                              .op = op},
                             comm, stream);
}
NcclResult Send(const void* from, size_t count, NcclDataType type, int peer, NcclCommHandle comm,
                CuStream stream) {
  return FakeNccl::It().Call("ncclSend",
                             {.kind = NcclCallKind::kSend,
                              .from = AddressOf(from),
                              .count = count,
                              .type = type,
                              .peer = peer},
                             comm, stream);
}
NcclResult Recv(void* to, size_t count, NcclDataType type, int peer, NcclCommHandle comm,
                CuStream stream) {
  return FakeNccl::It().Call("ncclRecv",
                             {.kind = NcclCallKind::kRecv,
                              .to = AddressOf(to),
                              .count = count,
                              .type = type,
                              .peer = peer},
                             comm, stream);
}
NcclResult RedOpCreatePreMulSum(NcclReduceOp* op, void* scalar, NcclDataType type, int residence,
                                NcclCommHandle comm) {
  HVD_FAKE_NCCL_ENTER_FOR("ncclRedOpCreatePreMulSum", comm);
  if (!fake.Ready("ncclRedOpCreatePreMulSum", comm)) return kNcclInvalidUsage;
  if (residence != kNcclScalarOfHost) fake.Complain("a factor that is not the host's");
  const DType dtype = DTypeOfNccl(type);
  *op = kFirstOwnOperation + fake.Count("ncclRedOpCreatePreMulSum");
  comm->operations[*op] = {dtype, Read(dtype, static_cast<const std::byte*>(scalar))};
  return kNcclSuccess;
}
NcclResult RedOpDestroy(NcclReduceOp op, NcclCommHandle comm) {
  HVD_FAKE_NCCL_ENTER_WITH("ncclRedOpDestroy", comm);
  if (comm->operations.erase(op) == 0) fake.Complain("ncclRedOpDestroy of an operation elsewhere");
  return kNcclSuccess;
}
const char* GetNcclErrorString(NcclResult result) {
  static thread_local std::string text;
  text = "the words of " + std::to_string(result);
  return text.c_str();
}
const char* GetNcclLastError(NcclCommHandle comm) {
  FakeNccl& fake = FakeNccl::It();
  std::lock_guard<std::recursive_mutex> lock(fake.mutex);
  if (comm != nullptr) fake.Alive("ncclGetLastError", comm);
  return fake.last_error.c_str();
}

// ---- those that only newer versions have

NcclResult CommRegister(NcclCommHandle comm, void* memory, size_t bytes, void** handle) {
  HVD_FAKE_NCCL_ENTER_FOR("ncclCommRegister", comm);
  if (!fake.Ready("ncclCommRegister", comm)) return kNcclInvalidUsage;
  FakeCuda::It().CheckDeviceRange("ncclCommRegister", AddressOf(memory), bytes);
  comm->registered.insert(memory);
  *handle = memory;
  return kNcclSuccess;
}
NcclResult CommDeregister(NcclCommHandle comm, void* handle) {
  HVD_FAKE_NCCL_ENTER_WITH("ncclCommDeregister", comm);
  if (comm->registered.erase(handle) == 0) fake.Complain("ncclCommDeregister of nothing");
  return kNcclSuccess;
}
NcclResult NcclMemAlloc(void** memory, size_t bytes) {
  HVD_FAKE_NCCL_ENTER("ncclMemAlloc");
  if (FakeCuda::It().CurrentContexts() == 0) fake.Complain("ncclMemAlloc without a context");
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0x6b, bytes);
  FakeCuda::It().AddMemory(AddressOf(*memory), bytes);
  FakeCuda::It().Own(AddressOf(*memory));
  fake.own_memory.insert(*memory);
  return kNcclSuccess;
}
// Nobody works on it any more, and no communicator that lives knows it.
NcclResult NcclMemFree(void* memory) {
  FakeNccl& fake = FakeNccl::It();
  std::lock_guard<std::recursive_mutex> lock(fake.mutex);
  const NcclResult ordered = fake.Enter("ncclMemFree");  // and it is freed, whatever that is
  if (fake.own_memory.erase(memory) == 0) {
    fake.Complain("ncclMemFree of memory that is not NCCL's");
    return kNcclInvalidArgument;
  }
  FakeCuda& cuda = FakeCuda::It();
  const auto found = cuda.device_memory.find(AddressOf(memory));
  cuda.CheckIdle("ncclMemFree", found->first, found->second);
  for (const auto& comm : fake.comms) {
    const bool ended = comm->destroyed || comm->aborted;
    if (!ended && comm->registered.contains(memory))
      fake.Complain("ncclMemFree of registered memory");
  }
  cuda.device_memory.erase(found);
  std::free(memory);
  return ordered;
}
struct NamedNcclEntry {
  const char* symbol;
  void* function;
};

const std::vector<NamedNcclEntry>& NcclEntries() {
  const NcclApi names;
  static const std::vector<NamedNcclEntry> entries = {
      {names.get_version.symbol, reinterpret_cast<void*>(&GetVersion)},
      {names.get_unique_id.symbol, reinterpret_cast<void*>(&GetUniqueId)},
      {names.comm_init_rank_config.symbol, reinterpret_cast<void*>(&CommInitRankConfig)},
      {names.comm_get_async_error.symbol, reinterpret_cast<void*>(&CommGetAsyncError)},
      {names.comm_finalize.symbol, reinterpret_cast<void*>(&CommFinalize)},
      {names.comm_destroy.symbol, reinterpret_cast<void*>(&CommDestroy)},
      {names.comm_abort.symbol, reinterpret_cast<void*>(&CommAbort)},
      {names.group_start.symbol, reinterpret_cast<void*>(&GroupStart)},
      {names.group_end.symbol, reinterpret_cast<void*>(&GroupEnd)},
      {names.all_reduce.symbol, reinterpret_cast<void*>(&AllReduce)},
      {names.reduce.symbol, reinterpret_cast<void*>(&ReduceToRoot)},
      {names.broadcast.symbol, reinterpret_cast<void*>(&Broadcast)},
      {names.all_gather.symbol, reinterpret_cast<void*>(&AllGather)},
      {names.reduce_scatter.symbol, reinterpret_cast<void*>(&ReduceScatter)},
      {names.send.symbol, reinterpret_cast<void*>(&Send)},
      {names.recv.symbol, reinterpret_cast<void*>(&Recv)},
      {names.red_op_create_pre_mul_sum.symbol, reinterpret_cast<void*>(&RedOpCreatePreMulSum)},
      {names.red_op_destroy.symbol, reinterpret_cast<void*>(&RedOpDestroy)},
      {names.get_error_string.symbol, reinterpret_cast<void*>(&GetNcclErrorString)},
      {names.get_last_error.symbol, reinterpret_cast<void*>(&GetNcclLastError)},
      {names.comm_register.symbol, reinterpret_cast<void*>(&CommRegister)},
      {names.comm_deregister.symbol, reinterpret_cast<void*>(&CommDeregister)},
      {names.mem_alloc.symbol, reinterpret_cast<void*>(&NcclMemAlloc)},
      {names.mem_free.symbol, reinterpret_cast<void*>(&NcclMemFree)},
  };
  return entries;
}

}  // namespace

FakeNccl::FakeNccl(FakeCuda& cuda) : cuda_(cuda) {
  if (it_ != nullptr) std::abort();
  it_ = this;
}

FakeNccl::~FakeNccl() { it_ = nullptr; }

void* FakeNccl::Find(const std::string& symbol) const {
  if (lacking.contains(symbol)) return nullptr;
  for (const NamedNcclEntry& entry : NcclEntries()) {
    if (symbol == entry.symbol) return entry.function;
  }
  return nullptr;
}

NcclLibrary FakeNccl::Library() const {
  Result<NcclLibrary> library = TryLibrary();
  if (!library.ok()) std::abort();
  return *library;
}

Result<NcclLibrary> FakeNccl::TryLibrary() const {
  return FillNccl("the fake", [this](const char* s) { return Find(s); });
}

std::vector<std::string> FakeNccl::Symbols() {
  std::vector<std::string> symbols;
#define HVD_SYMBOL(field, symbol, arguments) symbols.emplace_back(symbol);
  HVD_NCCL_CALLS(HVD_SYMBOL)
#undef HVD_SYMBOL
  return symbols;
}

std::vector<std::string> FakeNccl::OptionalSymbols() {
  std::vector<std::string> symbols;
#define HVD_SYMBOL(field, symbol, since, arguments) symbols.emplace_back(symbol);
  HVD_NCCL_OPTIONAL_CALLS(HVD_SYMBOL)
#undef HVD_SYMBOL
  return symbols;
}

std::vector<std::string> FakeNccl::AllSymbols() {
  std::vector<std::string> symbols = Symbols();
  for (const std::string& symbol : OptionalSymbols()) symbols.push_back(symbol);
  symbols.emplace_back(kAsyncError);
  return symbols;
}

void FakeNccl::Fail(const std::string& symbol, NcclResult result, int after) {
  failures_[symbol] = {result, Count(symbol) + after};
}

void FakeNccl::FailOnce(const std::string& symbol, int call, NcclResult result) {
  once_ = {symbol, entered_[symbol] + call, result, false, true};
}

void FakeNccl::HangOnce(const std::string& symbol, int call) {
  once_ = {symbol, entered_[symbol] + call, kNcclSuccess, true, true};
}

int FakeNccl::Entered(const std::string& symbol) const {
  auto found = entered_.find(symbol);
  return found == entered_.end() ? 0 : found->second;
}

int FakeNccl::Count(const std::string& symbol) const {
  auto found = counts_.find(symbol);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> FakeNccl::Leaks() const {
  std::vector<std::string> leaks;
  for (const auto& comm : comms) {
    if (!comm->destroyed && !comm->aborted) {
      leaks.push_back("the communicator of rank " + std::to_string(comm->rank));
    }
    if (comm->destroyed && !comm->operations.empty()) leaks.emplace_back("an operation");
  }
  for (const auto& [thread, depth] : group_depth) {
    if (depth != 0) leaks.push_back("a group of depth " + std::to_string(depth));
  }
  return leaks;
}

NcclResult FakeNccl::Ordered(const std::string& symbol) {
  const int call = entered_[symbol]++;
  if (once_.set && once_.symbol == symbol && once_.call == call) {
    once_.set = false;
    hangs_ = once_.hangs;
    return once_.result;
  }
  const auto found = failures_.find(symbol);
  const bool fails = found != failures_.end() && Count(symbol) >= found->second.second;
  return fails ? found->second.first : kNcclSuccess;
}

NcclResult FakeNccl::Enter(const char* symbol) {
  const NcclResult ordered = Ordered(symbol);
  if (ordered == kNcclSuccess) counts_[symbol] += 1;
  return ordered;
}

NcclResult FakeNccl::Enter(const char* symbol, NcclCommHandle comm) {
  const NcclResult ordered = Enter(symbol);
  if (comm == nullptr) return ordered;
  comm->failed = comm->failed || ordered != kNcclSuccess;
  NoteHang(comm);
  return ordered;
}

bool FakeNccl::Alive(const char* symbol, NcclCommHandle comm) {
  const bool known =
      std::any_of(comms.begin(), comms.end(), [&](const auto& one) { return one.get() == comm; });
  if (!known || comm->destroyed || comm->aborted) {
    Complain(std::string(symbol) + (known ? " after the end of" : " of no") + " communicator");
    return false;
  }
  const std::string_view name = symbol;
  if (comm->failed && name != "ncclCommAbort" && name != "ncclGetLastError")
    Complain(std::string(symbol) + " after an error of the communicator");
  return true;
}

bool FakeNccl::Ready(const char* symbol, NcclCommHandle comm) {
  if (!Alive(symbol, comm)) return false;
  const auto& members = comm->world->members;
  const bool started = std::count(members.begin(), members.end(), nullptr) == 0;
  if (!started || comm->finalized || comm->polls_left > 0) {
    Complain(std::string(symbol) + " of a communicator that is not ready");
    return false;
  }
  if (std::string_view(symbol) == "ncclCommFinalize") return true;
  if (cuda_.CurrentContexts() == 0) Complain(std::string(symbol) + " without a current context");
  if (comm->context != nullptr && cuda_.Current() != comm->context)
    Complain(std::string(symbol) + " in the context of another device");
  return true;
}

NcclCommHandle FakeNccl::MakeComm(FakeNcclWorld* world, int rank) {
  comms.push_back(std::make_unique<NcclCommObject>());
  comms.back()->world = world;
  comms.back()->rank = rank;
  comms.back()->context = cuda_.Current();
  comms.back()->process = cuda_.process;
  comms.back()->polls_left = slowness;
  world->members[static_cast<size_t>(rank)] = comms.back().get();
  return comms.back().get();
}

NcclResult FakeNccl::Init(NcclCommHandle* comm, int ranks, const NcclUniqueId& id, int rank) {
  std::unique_ptr<FakeNcclWorld>& world = worlds_[std::string(id.bytes, sizeof(id.bytes))];
  if (world == nullptr) world = std::make_unique<FakeNcclWorld>();
  if (world->members.empty()) world->members.resize(static_cast<size_t>(ranks));
  if (rank < 0 || rank >= ranks || world->members.size() != static_cast<size_t>(ranks) ||
      world->members[static_cast<size_t>(rank)] != nullptr) {
    Complain("a member comes twice, or with another size");
    return kNcclInvalidArgument;
  }
  *comm = MakeComm(world.get(), rank);
  NoteHang(*comm);
  return kNcclInProgress;
}

NcclResult FakeNccl::Ask(NcclCommHandle comm) {
  if (comm->async_error != kNcclSuccess) return comm->async_error;
  if (comm->stuck) return kNcclInProgress;
  const auto& members = comm->world->members;
  if (std::count(members.begin(), members.end(), nullptr) > 0) return kNcclInProgress;
  if (comm->finalized) {
    return std::all_of(members.begin(), members.end(), [](auto* one) { return one->finalized; })
               ? kNcclSuccess
               : kNcclInProgress;
  }
  if (comm->polls_left > 0) {
    comm->polls_left -= 1;
    if (comm->polls_left == 0) GiveToStream(comm);
    return kNcclInProgress;
  }
  return kNcclSuccess;
}

NcclResult FakeNccl::Call(const char* symbol, const NcclCall& call, NcclCommHandle comm,
                          CuStream stream) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const bool grouped = group_depth[std::this_thread::get_id()] > 0;
  NcclResult result = Enter(symbol, comm);
  if (result == kNcclSuccess && !Ready(symbol, comm)) result = kNcclInvalidUsage;
  if (result != kNcclSuccess) {
    if (grouped) group_failure_ = result;
    return result;
  }
  CheckRanges(symbol, call, comm);
  if (!grouped && IsPairCall(call)) Complain(std::string(symbol) + " outside of a group");
  if (!grouped) return Give({{call, comm, stream}});
  group_.push_back({call, comm, stream});
  return kNcclSuccess;
}

NcclResult FakeNccl::GroupEnd() {
  int& depth = group_depth[std::this_thread::get_id()];
  if (depth == 0) Complain("ncclGroupEnd without ncclGroupStart");
  depth = std::max(depth - 1, 0);
  const NcclResult failure = std::exchange(group_failure_, kNcclSuccess);
  const std::vector<Given> calls = std::exchange(group_, {});
  const NcclResult ordered = Enter("ncclGroupEnd");
  for (const Given& given : calls) {
    if (ordered != kNcclSuccess) given.comm->failed = true;
    NoteHang(given.comm);
  }
  if (ordered != kNcclSuccess) return ordered;
  return failure == kNcclSuccess ? Give(calls) : failure;
}

NcclResult FakeNccl::Give(const std::vector<Given>& calls) {
  for (const Given& given : calls) given.comm->waiting.emplace_back(given.call, given.stream);
  bool in_progress = slowness > 0;
  for (const Given& given : calls) {
    in_progress = in_progress || given.comm->stuck;
    given.comm->polls_left = slowness;
    if (slowness == 0 && !given.comm->stuck) GiveToStream(given.comm);
  }
  return in_progress ? kNcclInProgress : kNcclSuccess;
}

// A stream that captures gets them with each launch.
void FakeNccl::GiveToStream(NcclCommHandle comm) {
  const auto waiting = std::exchange(comm->waiting, {});
  std::map<CuStream, std::vector<FakeGiven>> by_stream;
  for (const auto& [call, stream] : waiting) by_stream[stream].push_back(MakeGiven(call, comm));
  for (auto& [stream, calls] : by_stream) {
    if (stream->capturing == nullptr) {
      GiveToStream(comm, stream, calls);
      continue;
    }
    for (FakeGiven& given : calls) given.capture = comm->captures + 1;
    comm->captures += 1;
    cuda_.Keep(stream, {[this, comm, calls](CuStream launched) {
                          std::lock_guard<std::recursive_mutex> lock(mutex);
                          if (Alive("cuGraphLaunch", comm)) GiveToStream(comm, launched, calls);
                        },
                        comm});
  }
}

// All of a group arrive before one of them waits for the others.
void FakeNccl::GiveToStream(NcclCommHandle comm, CuStream stream,
                            const std::vector<FakeGiven>& calls) {
  std::vector<std::pair<std::shared_ptr<FakeMeeting>, int>> met;
  for (const FakeGiven& given : calls) {
    Meet(given, comm);
    met.push_back(comm->meetings.back());
  }
  const size_t size = comm->world->members.size();
  const void*& on_gpu = kernel_on_gpu_[{comm->context, comm->process}];
  const void* kernel = met.empty() ? nullptr : met.front().first.get();
  cuda_.Submit(stream, {.run = [&on_gpu, kernel] { on_gpu = kernel; },
                        .may_run = [&on_gpu, comm] { return comm->aborted || on_gpu == nullptr; }});
  for (size_t i = 0; i < met.size(); ++i) {
    const auto& meeting = met[i].first;
    cuda_.Submit(stream, {.run = [meeting, comm] { Arrive(*meeting, comm); },
                          .touches = RangesOf(calls[i].call, comm->rank, size)});
  }
  for (size_t i = 0; i < met.size(); ++i) {
    cuda_.Submit(stream, {.awaits = &met[i].first->released[met[i].second],
                          .round = 1,
                          .touches = RangesOf(calls[i].call, comm->rank, size)});
  }
  cuda_.Submit(stream, {.run = [&on_gpu, kernel] {
                 if (on_gpu == kernel) on_gpu = nullptr;
               }});
}

FakeGiven FakeNccl::MakeGiven(const NcclCall& call, NcclCommHandle comm) {
  FakeGiven given{call, std::nullopt, 0};
  if (call.op < kFirstOwnOperation) return given;
  const auto found = comm->operations.find(call.op);
  if (found == comm->operations.end()) {
    Complain("a reduction by an operation that its communicator has not");
    return given;
  }
  if (found->second.dtype != DTypeOfNccl(call.type)) Complain("a factor of another type");
  given.factor = found->second;
  return given;
}

void FakeNccl::Meet(const FakeGiven& given, NcclCommHandle comm) {
  const NcclCall& call = given.call;
  FakeNcclWorld& world = *comm->world;
  std::tuple<int, int, uint64_t> name;
  int key = comm->rank;
  if (IsPairCall(call)) {
    key = call.kind == NcclCallKind::kSend ? 0 : 1;
    const std::pair pair =
        key == 0 ? std::pair(comm->rank, call.peer) : std::pair(call.peer, comm->rank);
    // A rank that sends to itself counts both ends.
    uint64_t& count = comm->pairs[{pair.first * 2 + key, pair.second}];
    name = {pair.first, pair.second, count++};
  } else {
    name = {-1, -1, comm->collectives++};
  }
  std::shared_ptr<FakeMeeting>& meeting = world.meetings[name];
  if (meeting == nullptr) {
    meeting = std::make_shared<FakeMeeting>();
    meeting->needed = IsPairCall(call) ? 2 : world.members.size();
    meeting->capture = given.capture;
  } else {
    CheckAlike(meeting->calls.begin()->second, call);
    if (meeting->capture != given.capture)
      Complain("members launch different graphs, or one of them no graph");
  }
  meeting->calls[key] = call;
  meeting->released[key].recorded = 1;
  if (given.factor.has_value()) meeting->factors[key] = given.factor->factor;
  comm->meetings.emplace_back(meeting, key);
}

void FakeNccl::CheckNoGraph(const char* symbol, NcclCommHandle comm) {
  if (cuda_.HasGraphOf(comm))
    Complain(std::string(symbol) + " waits for ever for the end of a graph of the communicator");
}

void FakeNccl::Arrive(FakeMeeting& meeting, NcclCommHandle comm) {
  if (comm->aborted) return;
  meeting.arrived += 1;
  if (meeting.arrived < meeting.needed) return;
  MoveData(meeting);
  for (auto& [key, event] : meeting.released) event.done = 1;
}

void FakeNccl::CheckAlike(const NcclCall& first, const NcclCall& second) {
  bool alike = first.count == second.count && first.type == second.type;
  if (IsPairCall(second)) {
    alike = alike && IsPairCall(first) && first.kind != second.kind;
  } else {
    const bool own = first.op >= kFirstOwnOperation && second.op >= kFirstOwnOperation;
    alike = alike && first.kind == second.kind && (own || first.op == second.op) &&
            first.peer == second.peer;
  }
  if (!alike) Complain("members call different things");
}

void FakeNccl::CheckRanges(const char* symbol, const NcclCall& call, NcclCommHandle comm) {
  for (const FakeRange& range : RangesOf(call, comm->rank, comm->world->members.size())) {
    cuda_.CheckDeviceRange(symbol, range.begin, range.bytes);
  }
}

void FakeNccl::End(NcclCommHandle comm, bool abort) {
  (abort ? comm->aborted : comm->destroyed) = true;
  if (!abort) return;
  comm->waiting.clear();
  for (auto& [meeting, key] : comm->meetings) meeting->released[key].done = 1;
  aborted.notify_all();
}

void FakeNccl::LetAbortsReturn() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  aborts_hang = false;
  unhung.notify_all();
}

// Kernels that wait for another member.
bool FakeNccl::HasKernels(const NcclCommObject& comm) {
  return std::ranges::any_of(
      comm.meetings, [](const auto& met) { return met.first->released.at(met.second).done == 0; });
}

void FakeNccl::AwaitIdle(NcclCommHandle comm, std::unique_lock<std::recursive_mutex>& lock) {
  const auto idle = [&] {
    return std::ranges::none_of(comms, [&](const auto& other) {
      const bool here = other->context == comm->context && !other->destroyed;
      return here && !other->aborted && HasKernels(*other);
    });
  };
  if (!aborted.wait_for(lock, std::chrono::seconds(5), idle))
    Complain("ncclCommAbort waits for ever for a communicator that nobody aborts");
}

}  // namespace hvd::test
