#include "launcher/wire/messages.h"

#include "runtime/base/bytes.h"

namespace hvd {
namespace {

template <typename V, typename M, typename... Same>
inline constexpr bool kIs = std::is_same_v<std::remove_const_t<M>, V>;

template <typename F>
void FactFields(auto& f, F& facts) {
  if constexpr (kIs<WaitFacts, F>) {
    f(facts.key), f(facts.id), f(facts.name), f(facts.set), f(facts.waited_ms), f(facts.seen_ms);
    f(facts.submitted), f(facts.awaited);
  } else {
    f(facts.rank), f(facts.pid), f(facts.in_world), f(facts.state), f(facts.blocked_in);
    f(facts.cpu_percent), f(facts.submitted), f(facts.last), f(facts.finished);
    f(facts.last_finished), f(facts.waits), f(facts.all_wait), f(facts.pending), f(facts.site);
    f(facts.shutdown_ms);
  }
}

// One Fields function per message lists its fields in wire order, for writing and for reading
// alike.
struct Writing {
  ByteWriter writer;
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(const T& value) { writer.Put(value); }
  void operator()(const std::string& text) { writer.PutString(text); }
  void operator()(const RankRun& run) {
    for (uint32_t v : run.Numbers()) writer.Put(v);
  }
  void operator()(const Placement& p) {
    for (uint32_t v : {p.rank, p.host, p.local_rank, p.local_size, p.cross_rank, p.cross_size})
      writer.Put(v);
  }
  void operator()(const Member& member) {
    writer.Put(member.worker);
    (*this)(member.place);
  }
  void operator()(const RankSpan& span) {
    for (uint32_t v : {span.first, span.count}) writer.Put(v);
  }
  void operator()(const TreeDownEntry& entry) {
    for (uint32_t v : {entry.first, entry.end}) writer.Put(v);
    writer.PutString(entry.message);
  }
  void operator()(const TreeUpEntry& entry) {
    writer.Put(entry.host);
    writer.PutString(entry.message);
  }
  void operator()(const WaitFacts& facts) { FactFields(*this, facts); }
  void operator()(const RankFacts& facts) { FactFields(*this, facts); }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    writer.Put(static_cast<uint32_t>(list.size()));
    for (const T& item : list) (*this)(item);
  }
};

struct Reading {
  ByteReader reader;
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(T& value) { value = reader.Get<T>(); }
  void operator()(bool& value) { value = reader.Get<uint8_t>() != 0; }
  void operator()(std::string& text) { text = reader.GetString(); }
  void operator()(RankRun& run) {
    std::array<uint32_t, 4> numbers{};
    for (uint32_t& v : numbers) v = reader.Get<uint32_t>();
    run = RankRun::Of(numbers);
  }
  void operator()(Placement& p) {
    for (uint32_t* v :
         {&p.rank, &p.host, &p.local_rank, &p.local_size, &p.cross_rank, &p.cross_size}) {
      *v = reader.Get<uint32_t>();
    }
  }
  void operator()(Member& member) {
    member.worker = reader.Get<uint32_t>();
    (*this)(member.place);
  }
  void operator()(RankSpan& span) {
    for (uint32_t* v : {&span.first, &span.count}) *v = reader.Get<uint32_t>();
  }
  void operator()(TreeDownEntry& entry) {
    for (uint32_t* v : {&entry.first, &entry.end}) *v = reader.Get<uint32_t>();
    entry.message = reader.GetString();
  }
  void operator()(TreeUpEntry& entry) {
    entry.host = reader.Get<uint32_t>();
    entry.message = reader.GetString();
  }
  void operator()(WaitFacts& facts) { FactFields(*this, facts); }
  void operator()(RankFacts& facts) { FactFields(*this, facts); }
  template <typename T>
  void operator()(std::vector<T>& list) {
    auto count = reader.Get<uint32_t>();
    // Not resized up front: a count that the bytes do not hold must not allocate.
    for (uint32_t i = 0; i < count && reader.ok(); ++i) (*this)(list.emplace_back());
  }
};

template <typename M>
void Fields(auto& f, M& m) {
  if constexpr (kIs<StartJob, M>) {
    f(m.job_id), f(m.job_key), f(m.host), f(m.size), f(m.homogeneous), f(m.slots), f(m.argv);
    f(m.directory);
    f(m.environment), f(m.worker_environment), f(m.terminate_grace_ms), f(m.driver_grace_ms);
    f(m.given_environment), f(m.master_address), f(m.master_port), f(m.omp_threads);
    f(m.machine_part), f(m.machine_parts), f(m.bind_to), f(m.stdin_to), f(m.layout);
    f(m.stdin_terminal);
    f(m.listen_addresses), f(m.first_port), f(m.last_port), f(m.silence_limit_ms);
    f(m.tree_host), f(m.tree_hosts), f(m.tree_radix), f(m.tree_above);
    f(m.elastic), f(m.workers), f(m.interfaces), f(m.restarts), f(m.max_restarts);
    f(m.trace);
  } else if constexpr (kIs<AddWorkers, M>) {
    f(m.workers), f(m.slots), f(m.size), f(m.homogeneous), f(m.master_address), f(m.master_port);
    f(m.restarts);
  } else if constexpr (kIs<AwaitDriver, M>) {
    f(m.key), f(m.grace_ms);
  } else if constexpr (kIs<BeginGeneration, M>) {
    f(m.generation), f(m.size), f(m.homogeneous), f(m.layout), f(m.members), f(m.one_machine);
  } else if constexpr (kIs<BreakGeneration, M>) {
    f(m.generation), f(m.reason);
  } else if constexpr (kIs<SignalWorkers, M> || kIs<StopRequested, M>) {
    f(m.signal);
  } else if constexpr (kIs<SignalWorker, M>) {
    f(m.rank), f(m.signal);
  } else if constexpr (kIs<DismissWorker, M>) {
    f(m.rank), f(m.reason);
  } else if constexpr (kIs<HoldCommits, M>) {
    f(m.generation);
  } else if constexpr (kIs<ActAtCommit, M>) {
    f(m.generation), f(m.commit), f(m.update), f(m.grace_ms);
  } else if constexpr (kIs<MemoryTold, M>) {
    f(m.rank), f(m.bytes);
  } else if constexpr (kIs<CommitsHeld, M>) {
    f(m.generation), f(m.most);
  } else if constexpr (kIs<AgentReady, M>) {
    f(m.pid), f(m.warden_pid), f(m.means), f(m.version), f(m.free_port);
    f(m.identity), f(m.slots);
  } else if constexpr (kIs<WorkerStarted, M>) {
    f(m.rank), f(m.pid);
  } else if constexpr (kIs<WorkerNotStarted, M>) {
    f(m.rank), f(m.error), f(m.reason);
  } else if constexpr (kIs<RankJoined, M> || kIs<AskMemory, M>) {
    f(m.rank);
  } else if constexpr (kIs<RankLeft, M>) {
    f(m.rank), f(m.generation), f(m.noticed_ns), f(m.had_failed);
  } else if constexpr (kIs<RankLost, M>) {
    f(m.rank), f(m.pid), f(m.generation), f(m.noticed_ns), f(m.reason), f(m.doing), f(m.had_failed);
  } else if constexpr (kIs<WorkerExited, M>) {
    f(m.rank), f(m.pid), f(m.end.by_signal), f(m.end.value), f(m.noticed_ns), f(m.last_stderr);
    f(m.out_of_memory), f(m.commits);
  } else if constexpr (kIs<WorkerOutput, M>) {
    f(m.rank), f(m.stream), f(m.bytes);
  } else if constexpr (kIs<KeyValue, M> || kIs<PutKey, M>) {
    f(m.generation), f(m.key), f(m.value);
  } else if constexpr (kIs<ProbeConnectivity, M> || kIs<OpenProbe, M>) {
    f(m.job_key), f(m.host), f(m.others), f(m.names), f(m.interfaces), f(m.first_port);
    f(m.last_port);
    if constexpr (kIs<ProbeConnectivity, M>) f(m.passes_on);
  } else if constexpr (kIs<ConnectivityProbed, M>) {
    f(m.trouble), f(m.addresses), f(m.tree_record), f(m.reasons);
  } else if constexpr (kIs<LookAtCommand, M>) {
    f(m.program), f(m.path), f(m.directory);
  } else if constexpr (kIs<CommandSeen, M>) {
    f(m.facts.program), f(m.facts.directory), f(m.facts.found), f(m.facts.real);
    f(m.facts.version), f(m.facts.error), f(m.facts.directory_error);
  } else if constexpr (kIs<UseRelay, M>) {
    f(m.host), f(m.hosts);
  } else if constexpr (kIs<RelayOpen, M>) {
    f(m.id), f(m.host), f(m.rank);
  } else if constexpr (kIs<RelayData, M>) {
    f(m.id), f(m.bytes);
  } else if constexpr (kIs<RelayClose, M>) {
    f(m.id);
  } else if constexpr (kIs<RelayCredit, M>) {
    f(m.id), f(m.bytes);
  } else if constexpr (kIs<RelayMeasured, M>) {
    f(m.host), f(m.bytes), f(m.elapsed_ns), f(m.latency_ns), f(m.trouble);
  } else if constexpr (kIs<TraceTaken, M>) {
    f(m.bytes);
  } else if constexpr (kIs<TraceBegun, M>) {
    f(m.rank), f(m.world_rank), f(m.generation), f(m.at_ns);
  } else if constexpr (kIs<TraceRecords, M>) {
    f(m.rank), f(m.world_rank), f(m.generation), f(m.lost), f(m.records);
  } else if constexpr (kIs<WantKey, M>) {
    f(m.generation), f(m.key);
  } else if constexpr (kIs<WorkerInput, M>) {
    f(m.bytes);
  } else if constexpr (kIs<InputTaken, M>) {
    f(m.bytes);
  } else if constexpr (kIs<AgentNote, M> || kIs<AgentWarning, M>) {
    f(m.text);
  } else if constexpr (kIs<TreeDown, M> || kIs<TreeUp, M>) {
    f(m.entries);
  } else if constexpr (kIs<RanksJoined, M>) {
    f(m.spans);
  } else if constexpr (kIs<TreeCut, M>) {
    f(m.reason);
  } else if constexpr (kIs<AgentPath, M>) {
    f(m.hvdrun), f(m.resume_address);
  } else if constexpr (kIs<AskTime, M>) {
    f(m.number);
  } else if constexpr (kIs<ExamineHost, M>) {
    f(m.directory), f(m.interpreter), f(m.environment), f(m.limit_ms), f(m.silence_limit_ms);
  } else if constexpr (kIs<MeasurePair, M>) {
    f(m.number), f(m.peer), f(m.leads);
  } else if constexpr (kIs<TimeTold, M>) {
    f(m.number), f(m.wall_ns), f(m.steady_ns);
  } else if constexpr (kIs<HostExam, M>) {
    f(m.facts);
  } else if constexpr (kIs<PairMeasured, M>) {
    f(m.number), f(m.peer), f(m.trouble), f(m.address), f(m.latency_ns), f(m.bytes_a_second);
  } else if constexpr (kIs<ExamineRanks, M>) {
    f(m.number), f(m.generation), f(m.stacks);
  } else if constexpr (kIs<StallSeen, M>) {
    f(m.generation), f(m.waiting), f(m.awaited);
  } else if constexpr (kIs<RanksExamined, M>) {
    f(m.number), f(m.generation), f(m.ranks);
  } else {
    static_assert(kIs<FinishJob, M> || kIs<AgentGone, M> || kIs<Resend, M>);
  }
}

template <typename Variant>
std::string Encode(const Variant& message) {
  Writing writing;
  writing.writer.Put(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { Fields(writing, m); }, message);
  return writing.writer.Take();
}

template <typename Variant, size_t I = 0>
Result<Variant> DecodeAs(size_t type, std::string_view bytes) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return InvalidArgument("unknown type " + std::to_string(type) + " of a message");
  } else {
    if (type != I) return DecodeAs<Variant, I + 1>(type, bytes);
    Reading reading{ByteReader(bytes)};
    std::variant_alternative_t<I, Variant> message;
    Fields(reading, message);
    if (!reading.reader.AtEnd()) return InvalidArgument("a message of a wrong length");
    return Variant(std::move(message));
  }
}

template <typename Variant>
Result<Variant> Decode(std::string_view bytes) {
  if (bytes.empty()) return InvalidArgument("an empty message");
  return DecodeAs<Variant>(static_cast<uint8_t>(bytes[0]), bytes.substr(1));
}

// Credit overtakes: it may be for the other direction only.
template <typename Variant>
bool Bulk(const Variant& message) {
  return std::holds_alternative<RelayOpen>(message) || std::holds_alternative<RelayData>(message) ||
         std::holds_alternative<RelayClose>(message);
}

}  // namespace

bool IsBulk(const ToAgent& message) { return Bulk(message); }
bool IsBulk(const ToDriver& message) {
  return Bulk(message) || std::holds_alternative<TraceBegun>(message) ||
         std::holds_alternative<TraceRecords>(message);
}

std::string EncodeToAgent(const ToAgent& message) { return Encode(message); }
std::string EncodeToDriver(const ToDriver& message) { return Encode(message); }
Result<ToAgent> DecodeToAgent(std::string_view bytes) { return Decode<ToAgent>(bytes); }
Result<ToDriver> DecodeToDriver(std::string_view bytes) { return Decode<ToDriver>(bytes); }

namespace {

const auto kOutputType = static_cast<uint8_t>(ToDriver(WorkerOutput{}).index());

}  // namespace

std::string EncodeOutput(uint32_t rank, OutputStream stream, std::string_view first,
                         std::string_view second) {
  ByteWriter head;
  head.Put(kOutputType).Put(rank).Put(stream);
  head.Put(static_cast<uint32_t>(first.size() + second.size()));
  std::string message = head.Take();
  message.reserve(kOutputOverhead + first.size() + second.size());
  return message.append(first).append(second);
}

std::optional<WorkerOutputView> PeekOutput(std::string_view message) {
  ByteReader reader(message);
  if (reader.Get<uint8_t>() != kOutputType) return std::nullopt;
  WorkerOutputView output;
  output.rank = reader.Get<uint32_t>();
  output.stream = reader.Get<OutputStream>();
  output.bytes = reader.GetString();
  if (!reader.AtEnd() || output.stream > OutputStream::kStderr) return std::nullopt;
  return output;
}

}  // namespace hvd
