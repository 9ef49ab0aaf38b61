#include "launcher/wire/messages.h"

#include "runtime/base/bytes.h"
#include "runtime/net/fields.h"

namespace hvd {

// ---- values in messages

void Fields(auto& f, MaybeConst<Placement> auto& p) {
  f(p.rank, p.host, p.local_rank, p.local_size, p.cross_rank, p.cross_size);
}
void Fields(auto& f, MaybeConst<Member> auto& m) { f(m.worker, m.place); }
void Fields(auto& f, MaybeConst<RankSpan> auto& m) { f(m.first, m.count); }
void Fields(auto& f, MaybeConst<TreeDownEntry> auto& m) { f(m.first, m.end, m.message); }
void Fields(auto& f, MaybeConst<TreeUpEntry> auto& m) { f(m.host, m.message); }
void Fields(auto& f, MaybeConst<WaitFacts> auto& m) {
  f(m.key, m.id, m.name, m.set, m.waited_ms, m.seen_ms, m.submitted, m.awaited);
}
void Fields(auto& f, MaybeConst<RankFacts> auto& m) {
  f(m.rank, m.pid, m.in_world, m.state, m.blocked_in, m.cpu_percent, m.submitted, m.last,
    m.finished, m.last_finished, m.waits, m.all_wait, m.pending, m.site);
}
void Fields(auto& f, MaybeConst<WorkerCounts> auto& m) {
  f(m.worker, m.rank, m.activity, m.operations, m.bytes, m.steps, m.commits, m.last, m.waited_ns,
    m.collective, m.last_submitted);
}
void Fields(auto& f, MaybeConst<WorkerStacks> auto& m) { f(m.worker, m.text, m.reason); }
void Fields(auto& f, MaybeConst<ScriptObservation> auto& m) {
  f(m.worker, m.is_guest, m.guest, m.pid, m.state, m.blocked_in, m.silent_ms, m.still_ms,
    m.cpu_permille, m.bytes_moved, m.sampled, m.sample_ms, m.same_ms, m.call, m.may_compute, m.once,
    m.site, m.inside, m.trouble);
}
void Fields(auto& f, MaybeConst<FlightEntry> auto& m) {
  f(m.number, m.is_message, m.state, m.operation, m.tensors, m.type, m.inputs, m.outputs);
}
void Fields(auto& f, MaybeConst<FlightGroup> auto& m) {
  f(m.name, m.description, m.ranks, m.last, m.entries);
}
void Fields(auto& f, MaybeConst<FlightRecord> auto& m) { f(m.worker, m.rank, m.trouble, m.groups); }
void Fields(auto& f, MaybeConst<ProcessEnd> auto& m) { f(m.by_signal, m.value); }
void Fields(auto& f, MaybeConst<CommandFacts> auto& m) {
  f(m.program, m.directory, m.found, m.real, m.version, m.error, m.directory_error);
}
void Fields(auto& f, MaybeConst<StartJob::Ranks> auto& m) {
  f(m.size, m.homogeneous, m.slots, m.layout, m.workers);
}
void Fields(auto& f, MaybeConst<StartJob::Program> auto& m) {
  f(m.argv, m.function, m.directory, m.environment, m.settings, m.given, m.stdin_to,
    m.stdin_terminal);
}
void Fields(auto& f, MaybeConst<StartJob::Share> auto& m) {
  f(m.part, m.parts, m.omp_threads, m.bind_to, m.gpus);
}
void Fields(auto& f, MaybeConst<StartJob::Meeting> auto& m) {
  f(m.listen_addresses, m.interfaces, m.first_port, m.last_port, m.master_address, m.master_port,
    m.rendezvous);
}
void Fields(auto& f, MaybeConst<StartJob::Limits> auto& m) {
  f(m.terminate_grace_ms, m.driver_grace_ms, m.silence_ms, m.script_warning_ms, m.commit_bytes);
}
void Fields(auto& f, MaybeConst<StartJob::Tree> auto& m) { f(m.host, m.hosts, m.radix, m.above); }
void Fields(auto& f, MaybeConst<StartJob::Restarts> auto& m) { f(m.done, m.most); }
void Fields(auto& f, MaybeConst<StartJob::Policy> auto& m) {
  f(m.ranks_change, m.stops_at_commit, m.measures_training);
}

// ---- messages

void Fields(auto& f, MaybeConst<StartJob> auto& m) {
  f(m.job_id, m.job_key, m.host, m.ranks, m.program, m.share, m.meeting, m.limits, m.tree,
    m.restarts, m.policy, m.trace);
}
void Fields(auto& f, MaybeConst<AddWorkers> auto& m) {
  f(m.workers, m.slots, m.size, m.homogeneous, m.master_address, m.master_port, m.restarts,
    m.rendezvous);
}
void Fields(auto& f, MaybeConst<AwaitDriver> auto& m) { f(m.key, m.grace_ms); }
void Fields(auto& f, MaybeConst<AwaitSuccessor> auto& m) { f(m.key, m.grace_ms); }
void Fields(auto& f, MaybeConst<OutputPrinted> auto& m) { f(m.rank, m.stream, m.bytes); }
void Fields(auto& f, MaybeConst<TakeOver> auto& m) { f(m.printed); }
void Fields(auto& f, MaybeConst<BeginGeneration> auto& m) {
  f(m.generation, m.size, m.homogeneous, m.layout, m.members, m.one_machine);
}
void Fields(auto& f, MaybeConst<BreakGeneration> auto& m) { f(m.generation, m.reason); }
void Fields(auto& f, MaybeConst<SignalWorkers> auto& m) { f(m.signal); }
void Fields(auto& f, MaybeConst<StopRequested> auto& m) { f(m.signal); }
void Fields(auto& f, MaybeConst<SignalWorker> auto& m) { f(m.rank, m.signal); }
void Fields(auto& f, MaybeConst<DismissWorker> auto& m) { f(m.rank, m.reason); }
void Fields(auto& f, MaybeConst<HoldCommits> auto& m) { f(m.generation); }
void Fields(auto& f, MaybeConst<ActAtCommit> auto& m) {
  f(m.generation, m.commit, m.update, m.grace_ms);
}
void Fields(auto& f, MaybeConst<MemoryReply> auto& m) { f(m.rank, m.bytes); }
void Fields(auto& f, MaybeConst<CommitsHeld> auto& m) { f(m.generation, m.most); }
void Fields(auto& f, MaybeConst<AgentReady> auto& m) {
  f(m.pid, m.warden_pid, m.means, m.version, m.free_port, m.identity, m.slots, m.cpus);
}
void Fields(auto& f, MaybeConst<WorkerStarted> auto& m) { f(m.rank, m.pid); }
void Fields(auto& f, MaybeConst<WorkerNotStarted> auto& m) { f(m.rank, m.error, m.reason); }
void Fields(auto& f, MaybeConst<RankJoined> auto& m) { f(m.rank); }
void Fields(auto& f, MaybeConst<AskMemory> auto& m) { f(m.rank); }
void Fields(auto& f, MaybeConst<RankLeft> auto& m) {
  f(m.rank, m.generation, m.noticed_ns, m.had_failed);
}
void Fields(auto& f, MaybeConst<RankLost> auto& m) {
  f(m.rank, m.pid, m.generation, m.noticed_ns, m.reason, m.doing, m.had_failed);
}
void Fields(auto& f, MaybeConst<WorkerExited> auto& m) {
  f(m.rank, m.pid, m.end, m.noticed_ns, m.last_stderr, m.out_of_memory, m.commits);
}
void Fields(auto& f, MaybeConst<WorkerSnapshot> auto& m) {
  f(m.rank, m.pid, m.waiting, m.generation);
}
void Fields(auto& f, MaybeConst<HostSnapshot> auto& m) {
  f(m.started, m.generation, m.workers, m.left, m.lost, m.exited);
}
void Fields(auto& f, MaybeConst<WorkerOutput> auto& m) { f(m.rank, m.stream, m.bytes); }
void Fields(auto& f, MaybeConst<KeyValue> auto& m) { f(m.generation, m.key, m.value); }
void Fields(auto& f, MaybeConst<PutKey> auto& m) { f(m.generation, m.key, m.value); }
void Fields(auto& f, MaybeConst<ProbeConnectivity> auto& m) {
  f(m.job_key, m.host, m.others, m.names, m.interfaces, m.first_port, m.last_port, m.passes_on);
}
void Fields(auto& f, MaybeConst<OpenProbe> auto& m) {
  f(m.job_key, m.host, m.others, m.names, m.interfaces, m.first_port, m.last_port);
}
void Fields(auto& f, MaybeConst<ConnectivityProbed> auto& m) {
  f(m.trouble, m.addresses, m.tree_record, m.reasons);
}
void Fields(auto& f, MaybeConst<LookAtCommand> auto& m) { f(m.program, m.path, m.directory); }
void Fields(auto& f, MaybeConst<CommandReport> auto& m) { f(m.facts); }
void Fields(auto& f, MaybeConst<UseRelay> auto& m) { f(m.host, m.hosts); }
void Fields(auto& f, MaybeConst<RelayOpen> auto& m) { f(m.id, m.host, m.rank); }
void Fields(auto& f, MaybeConst<RelayData> auto& m) { f(m.id, m.bytes); }
void Fields(auto& f, MaybeConst<RelayClose> auto& m) { f(m.id); }
void Fields(auto& f, MaybeConst<RelayCredit> auto& m) { f(m.id, m.bytes); }
void Fields(auto& f, MaybeConst<RelayMeasured> auto& m) {
  f(m.host, m.bytes, m.elapsed_ns, m.latency_ns, m.trouble);
}
void Fields(auto& f, MaybeConst<TraceTaken> auto& m) { f(m.bytes); }
void Fields(auto& f, MaybeConst<TraceBegun> auto& m) {
  f(m.rank, m.world_rank, m.generation, m.at_ns);
}
void Fields(auto& f, MaybeConst<TraceRecords> auto& m) {
  f(m.rank, m.world_rank, m.generation, m.lost, m.records);
}
void Fields(auto& f, MaybeConst<WantKey> auto& m) { f(m.generation, m.key); }
void Fields(auto& f, MaybeConst<WorkerInput> auto& m) { f(m.bytes); }
void Fields(auto& f, MaybeConst<InputTaken> auto& m) { f(m.bytes); }
void Fields(auto& f, MaybeConst<AgentNote> auto& m) { f(m.text); }
void Fields(auto& f, MaybeConst<AgentWarning> auto& m) { f(m.text); }
void Fields(auto& f, MaybeConst<TreeDown> auto& m) { f(m.entries); }
void Fields(auto& f, MaybeConst<TreeUp> auto& m) { f(m.entries); }
void Fields(auto& f, MaybeConst<RanksJoined> auto& m) { f(m.spans); }
void Fields(auto& f, MaybeConst<TreeCut> auto& m) { f(m.reason); }
void Fields(auto& f, MaybeConst<PlacesRefused> auto& m) { f(m.reason); }
void Fields(auto& f, MaybeConst<PlaceTaken> auto& m) { f(m.place, m.of); }
void Fields(auto& f, MaybeConst<MasterPortTaken> auto& m) { f(m.uid, m.port, m.host); }
void Fields(auto& f, MaybeConst<ForwardSignal> auto& m) { f(m.number, m.signal); }
void Fields(auto& f, MaybeConst<SignalForwarded> auto& m) { f(m.number, m.signal, m.ranks); }
void Fields(auto& f, MaybeConst<AgentPath> auto& m) { f(m.hvdrun, m.resume_address); }
void Fields(auto& f, MaybeConst<AskTime> auto& m) { f(m.number); }
void Fields(auto& f, MaybeConst<ExamineHost> auto& m) {
  f(m.directory, m.interpreter, m.environment, m.limit_ms, m.silence_limit_ms);
}
void Fields(auto& f, MaybeConst<MeasurePair> auto& m) { f(m.number, m.peer, m.leads); }
void Fields(auto& f, MaybeConst<TimeReply> auto& m) { f(m.number, m.wall_ns, m.steady_ns); }
void Fields(auto& f, MaybeConst<HostExam> auto& m) { f(m.facts); }
void Fields(auto& f, MaybeConst<PairMeasured> auto& m) {
  f(m.number, m.peer, m.trouble, m.address, m.latency_ns, m.bytes_a_second);
}
void Fields(auto& f, MaybeConst<ExamineRanks> auto& m) { f(m.number, m.generation, m.stacks); }
void Fields(auto& f, MaybeConst<AskCounts> auto& m) { f(m.number, m.measure_ms); }
void Fields(auto& f, MaybeConst<AskRings> auto& m) { f(m.number); }
void Fields(auto& f, MaybeConst<AskStacks> auto& m) { f(m.number, m.native); }
void Fields(auto& f, MaybeConst<StacksReply> auto& m) { f(m.number, m.workers); }
void Fields(auto& f, MaybeConst<AskFlight> auto& m) { f(m.number); }
void Fields(auto& f, MaybeConst<FlightReply> auto& m) { f(m.number, m.records); }
void Fields(auto& f, MaybeConst<ScriptObserved> auto& m) { f(m.ranks); }
void Fields(auto& f, MaybeConst<RingsOver> auto& m) { f(m.number); }
void Fields(auto& f, MaybeConst<CountsReply> auto& m) {
  f(m.number, m.generation, m.at_ns, m.workers);
}
void Fields(auto& f, MaybeConst<RingReply> auto& m) {
  f(m.number, m.rank, m.world_rank, m.generation, m.records);
}
void Fields(auto& f, MaybeConst<StallReport> auto& m) { f(m.generation, m.waiting, m.awaited); }
void Fields(auto& f, MaybeConst<GenerationIdle> auto& m) { f(m.generation, m.idle_ms); }
void Fields(auto& f, MaybeConst<RanksExamined> auto& m) { f(m.number, m.generation, m.ranks); }
void Fields(auto&, MaybeConst<FinishJob> auto&) {}
void Fields(auto&, MaybeConst<AgentGone> auto&) {}
void Fields(auto&, MaybeConst<Resend> auto&) {}
void Fields(auto&, MaybeConst<AwaitPlaces> auto&) {}

namespace {

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

std::string EncodeToAgent(const ToAgent& message) { return EncodeMessage(message); }
std::string EncodeToDriver(const ToDriver& message) { return EncodeMessage(message); }
Result<ToAgent> DecodeToAgent(std::string_view bytes) {
  return DecodeMessage<ToAgent>(bytes, "message");
}
Result<ToDriver> DecodeToDriver(std::string_view bytes) {
  return DecodeMessage<ToDriver>(bytes, "message");
}

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
  if (!reader.AtEnd() || output.stream > OutputStream::kResult) return std::nullopt;
  return output;
}

}  // namespace hvd
