// The messages that driver and agent send to each other over their stream: the payloads of its
// control and log frames. PROTOCOL.md (runtime/net) has the conversation. Pure.
#ifndef HVD_LAUNCHER_WIRE_MESSAGES_H_
#define HVD_LAUNCHER_WIRE_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/choices.h"
#include "launcher/process/process_end.h"
#include "launcher/wire/command_facts.h"
#include "launcher/wire/plan.h"
#include "launcher/wire/rank_facts.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// Which events of the ranks the agents send, for the timeline of the job.
enum class TraceMode : uint8_t { kOff = 0, kOn = 1, kWithCycles = 2 };

// ---- driver to agent

// The agent's part of the plan and all it needs to start it. Sent once.
//
// A worker is a process of the job, numbered from 0 for the life of the job; `rank` in all messages
// about workers is that number. In a job of fixed size it is the rank. In an elastic one each
// generation tells which rank a worker has in it (BeginGeneration).
struct StartJob {
  std::string job_id;   // the same on every host, as the driver knows the job
  std::string job_key;  // secret: workers prove with it that they belong to the job
  std::string host;     // the name of this host in the plan
  struct Ranks {
    uint32_t size = 0;  // of the job
    uint8_t homogeneous = 1;
    std::vector<Placement> slots;   // of this host
    std::vector<RankRun> layout;    // of all ranks
    std::vector<uint32_t> workers;  // by slot; empty: their numbers are the ranks in `slots`
  } ranks;
  struct Program {
    std::vector<std::string> argv;
    std::string
        function;  // that each worker is to run (runner/run_task.py); empty: it is a command
    std::string directory;
    // "NAME=value" each, later ones win: the driver's own, from the settings, from --env-file and
    // -x.
    std::vector<std::string> environment, settings, given;
    StdinTo stdin_to = StdinTo::kNone;
    // A person types it, and must see a prompt though its line has no end yet.
    uint8_t stdin_terminal = 0;
  } program;
  struct Share {                   // of the machine
    uint32_t part = 0, parts = 1;  // of so many equal parts of its cores, that of this agent
    int32_t omp_threads = -1;      // 0: the share of cores; -1: left alone
    BindTo bind_to = BindTo::kNone;
    GpuVisibility gpus = GpuVisibility::kAll;
  } share;
  struct Meeting {  // where ranks meet those of other hosts
    std::vector<std::string> listen_addresses;
    std::vector<std::string> interfaces;     // of an elastic job: where they listen; empty: all
    uint16_t first_port = 0, last_port = 0;  // both 0: any
    std::string master_address;              // for torch.distributed
    uint32_t master_port = 0;
    // Of workers that use stock Horovod: "10.0.0.1:4711"; empty: they use our runtime.
    std::string rendezvous;
  } meeting;
  struct Limits {
    int64_t terminate_grace_ms = 0;
    int64_t driver_grace_ms = 0;
    int64_t silence_ms = 0;  // so long without a word of the driver, and it is lost; 0: for ever
    // So long a script that uses collectives of other libraries may show nothing until it is
    // looked into; 0: for ever.
    int64_t script_warning_ms = 0;
    // Memory of this host for commits that outlive its workers; 0: none.
    int64_t commit_bytes = 0;
  } limits;
  struct Tree {  // in which agents pass messages on (agent_tree.h); hosts 0: there is none
    uint32_t host = 0, hosts = 0, radix = 0;
    std::string above;  // the mesh record of the parent (mesh_address.h); empty: it is the driver
  } tree;
  struct Restarts {  // for scripts of torchrun
    uint32_t done = 0, most = 0;
  } restarts;
  struct Policy {                   // what the agent and its workers do (job/policy/job_policy.h)
    uint8_t ranks_change = 0;       // the members of each generation are told when it begins
    uint8_t stops_at_commit = 0;    // a signal to the agent asks the job to stop so
    uint8_t measures_training = 0;  // waits of ranks are reported for that
  } policy;
  TraceMode trace = TraceMode::kOff;
};
// More workers of an elastic job on a host that has its part already. Their places are those that
// they take if nothing changes until they join.
struct AddWorkers {
  std::vector<uint32_t> workers;
  std::vector<Placement> slots;  // one for each
  uint32_t size = 0;
  uint8_t homogeneous = 1;
  std::string master_address;
  uint32_t master_port = 0;
  uint32_t restarts = 0;
  std::string rendezvous;  // as in StartJob
};
// From now on an agent whose connection is lost waits so long for the driver to come back on
// another one.
struct AwaitDriver {
  std::string key;  // secret: proves the driver when it comes back
  int64_t grace_ms = 0;
};
// From now on an agent whose driver is gone waits so long for another one, which begins a stream of
// its own (HostSnapshot).
struct AwaitSuccessor {
  std::string key;  // secret: proves the other driver
  int64_t grace_ms = 0;
};
// So many bytes of this worker's output have been printed: the agent need not keep them.
struct OutputPrinted {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  uint64_t bytes = 0;  // since the worker started
};
// The first message of a driver that has taken over: what was printed before. Answered by
// HostSnapshot, and by all output behind that.
struct TakeOver {
  std::vector<OutputPrinted> printed;
};
// A worker's place in a generation of an elastic job.
struct Member {
  uint32_t worker = 0;
  Placement place;
};
// Every rank of the job asked for it: the world `generation` begins. The other fields are those of
// an elastic job; a job of fixed size has them from StartJob.
struct BeginGeneration {
  uint64_t generation = 0;
  uint32_t size = 0;
  uint8_t homogeneous = 1;
  std::vector<RankRun> layout;  // of all ranks
  std::vector<Member> members;  // those of the host; none: it has no part in this generation
  uint8_t one_machine = 1;      // the ranks reach each other at the loopback address
};
// The generation (0: the one being waited for) cannot go on.
struct BreakGeneration {
  uint64_t generation = 0;
  std::string reason;
};
// A signal to every worker that still runs. SIGKILL, SIGSTOP and SIGCONT go to whole trees.
struct SignalWorkers {
  int32_t signal = 0;
};
// The same to one worker and all that it started.
struct SignalWorker {
  uint32_t rank = 0;
  int32_t signal = 0;
};
// hvdrun got a signal that warns (SIGUSR1, SIGUSR2): it goes to the own process of each rank that
// handles it (signal_receiver.h). Answered by SignalForwarded.
struct ForwardSignal {
  uint32_t number = 0;  // from 1
  int32_t signal = 0;
};
// How much memory does this worker hold? Answered by MemoryReply, unless it has ended.
struct AskMemory {
  uint32_t rank = 0;
};
// The answer to a RankJoined of a worker that the job does not need any more.
struct DismissWorker {
  uint32_t rank = 0;
  std::string reason;
};
// Let no rank of the generation pass another commit, and tell how many the most advanced one has
// passed. Answered by CommitsHeld.
struct HoldCommits {
  uint64_t generation = 0;
};
// All ranks of the generation act at this commit; `update` is a set of the bits of CommitUpdate
// (runtime/segment).
struct ActAtCommit {
  uint64_t generation = 0, commit = 0;
  uint32_t update = 0;
  uint32_t grace_ms = 0;  // of a stop: how long the ranks may take to leave
};
// All workers have ended: kill what they left behind, send the rest of their output, then say
// AgentGone.
struct FinishJob {};
// Bytes that hvdrun read on its stdin; empty: there is no more.
struct WorkerInput {
  std::string bytes;
};
// Find out whether the named hosts can be reached. Their listeners are told through the directory
// of generation 0.
struct ProbeConnectivity {
  std::string job_key;
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> others;
  std::vector<std::string> names;       // of the others
  std::vector<std::string> interfaces;  // to use; empty: all
  uint16_t first_port = 0, last_port = 0;
  uint8_t passes_on = 0;  // this agent will have others below it in the tree
};
// What would this program be on your host? (command_facts.h)
struct LookAtCommand {
  std::string program, path, directory;
};
// An entry of the generation's directory that the agent wanted.
struct KeyValue {
  uint64_t generation = 0;
  std::string key, value;
};

// A message that agents pass down the tree: an encoded ToAgent for the hosts first..end-1.
struct TreeDownEntry {
  uint32_t first = 0, end = 0;
  std::string message;
};
struct TreeDown {
  std::vector<TreeDownEntry> entries;
};
// A part of the tree lost its way to the driver, and with it perhaps what was on it: say again
// which workers started and ended.
struct Resend {};
// What time is it there? Answered at once, by TimeReply.
struct AskTime {
  uint32_t number = 0;
};
// Find out what this host has, as a worker would see it (hvdrun doctor). Answered by HostExam.
struct ExamineHost {
  std::string directory;
  std::string interpreter;               // of Python: a name or a path
  std::vector<std::string> environment;  // "NAME=value", the driver's own
  int64_t limit_ms = 0;                  // for the answer
  int64_t silence_limit_ms = 0;          // as in StartJob
};
// Get ready to measure the ways to the named hosts. As ProbeConnectivity, through the directory of
// generation 1.
struct OpenProbe {
  std::string job_key;
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> others;
  std::vector<std::string> names;       // of the others
  std::vector<std::string> interfaces;  // to use; empty: all
  uint16_t first_port = 0, last_port = 0;
};
// Measure the route to one of them, which gets the same message. Answered by PairMeasured.
struct MeasurePair {
  uint32_t number = 0;
  uint32_t peer = 0;
  uint8_t leads = 0;  // one of the two
};
// Connections from ranks here to ranks on these hosts do not work: their bytes go through the
// driver. Answered by RelayMeasured, one for each.
struct UseRelay {
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> hosts;
};
// So many bytes of TraceRecords are in the file: as many more may come.
struct TraceTaken {
  uint64_t bytes = 0;
};

// A collective takes too long: find out what the ranks of your host do, and of those in `stacks`
// where in their source they are. Answered by RanksExamined.
struct ExamineRanks {
  uint32_t number = 0;
  uint64_t generation = 0;
  std::vector<uint32_t> stacks;
};

// Asks for the work that the ranks of a host have done so far. Answered by CountsReply. For the
// time given, they also measure how long they wait and count which of them is last.
struct AskCounts {
  uint32_t number = 0;
  uint32_t measure_ms = 0;
};
// Asks for the Python stacks of the workers that run on a host, `native`: with their C frames.
// Answered by StacksReply.
struct AskStacks {
  uint32_t number = 0;
  uint8_t native = 0;
};
// Asks for what PyTorch's flight recorders have recorded in the workers of a host. Answered by
// FlightReply.
struct AskFlight {
  uint32_t number = 0;
};
// Asks for the contents of the trace rings of a host. Answered by RingReply for each rank of the
// last generation, then RingsOver.
struct AskRings {
  uint32_t number = 0;
};

// Another launcher starts a process for each rank, which gives its place to the rank of this agent
// (launcher/external/places). Sent before StartJob. Answered by a PlaceTaken for each, or
// PlacesRefused.
struct AwaitPlaces {};

// ---- both ways

// A process of another user listens at the port that MASTER_PORT names, found by the agent of rank
// 0, passed on to the others: a rank that connects there ends the job.
struct MasterPortTaken {
  uint32_t uid = 0;
  uint32_t port = 0;
  std::string host;  // rank 0's
};

// ---- both ways: connections that the driver passes on (relay_switch.h)

// Bytes of one connection and direction that may be on the way between the two agents.
inline constexpr uint64_t kRelayWindow = 1024 * 1024;
// Of one RelayData.
inline constexpr size_t kRelayPiece = 32 * 1024;
// Not a rank's connection: the agent over there takes the bytes and returns the credit.
inline constexpr uint32_t kRelayProbe = UINT32_MAX;

// A connection to a rank's listener on another host. `id`: the number of the host that opens it in
// the upper 32 bits.
struct RelayOpen {
  uint64_t id = 0;
  uint32_t host = 0, rank = 0;  // where to
};
struct RelayData {
  uint64_t id = 0;
  std::string bytes;
};
// This end is over: nothing more comes, and nothing is taken.
struct RelayClose {
  uint64_t id = 0;
};
// So many bytes of RelayData have left the agent: as many more may come.
struct RelayCredit {
  uint64_t id = 0, bytes = 0;
};

// ---- agent to driver

// The first message: the agent and its host.
struct AgentReady {
  int32_t pid = 0, warden_pid = 0;
  std::string means;       // how this agent makes sure that nothing is left behind
  std::string version;     // of its hvdrun
  uint32_t free_port = 0;  // held by the agent for MASTER_PORT; 0: none
  std::string identity;    // of the host (host_identity.h)
  uint32_t slots = 0;      // that it has by itself: GPUs, else cores
  uint32_t cpus = 0;       // of the whole host
};
struct WorkerStarted {
  uint32_t rank = 0;
  int32_t pid = 0;
};
struct WorkerNotStarted {
  uint32_t rank = 0;
  int32_t error = 0;  // errno
  std::string reason;
};
// The rank wants to be in the next generation.
struct RankJoined {
  uint32_t rank = 0;
};
// The rank said goodbye to the generation.
struct RankLeft {
  uint32_t rank = 0;
  uint64_t generation = 0;
  int64_t noticed_ns = 0;   // by the host's steady clock, as all such stamps (host_clock.h)
  bool had_failed = false;  // a collective of it, because of other ranks: this is a consequence
};
// The rank is gone without a goodbye; `generation` 0: while it waited for one.
struct RankLost {
  uint32_t rank = 0;
  int32_t pid = 0;
  uint64_t generation = 0;
  int64_t noticed_ns = 0;
  std::string reason;
  std::string doing;        // "; its last collective was 'x'", or nothing
  bool had_failed = false;  // as in RankLeft
};
struct WorkerExited {
  uint32_t rank = 0;
  int32_t pid = 0;
  ProcessEnd end;
  int64_t noticed_ns = 0;
  std::string last_stderr;
  bool out_of_memory = false;  // the kernel killed it, by its counters
  uint64_t commits = 0;        // that it passed in all generations of its life
};
// A log: bytes of one worker, in whole lines where possible.
struct WorkerOutput {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string bytes;
};
// So many bytes of WorkerInput have left the agent.
struct InputTaken {
  uint64_t bytes = 0;
};
// A rank put an entry into the generation's directory.
struct PutKey {
  uint64_t generation = 0;
  std::string key, value;
};
// A rank of this host waits for an entry. Answered by KeyValue once it is there.
struct WantKey {
  uint64_t generation = 0;
  std::string key;
};
// The answer to ProbeConnectivity: the obstacle, or at which address each of the others answered.
struct ConnectivityProbed {
  std::string trouble;
  std::vector<std::string> addresses;  // numeric, without a port; empty: none
  std::string tree_record;             // where agents below this one find it
  std::vector<std::string> reasons;    // why there is no address, by the same numbers
};
// The answer to LookAtCommand.
struct CommandReport {
  CommandFacts facts;
};
// How fast the way to that host through the driver is. `trouble`: nothing came of it, and why.
struct RelayMeasured {
  uint32_t host = 0;
  uint64_t bytes = 0;
  int64_t elapsed_ns = 0, latency_ns = 0;  // latency: there and back
  std::string trouble;
};
// A sentence for --verbose.
struct AgentNote {
  std::string text;
};
// A sentence that the user hears in any case, without the name of the host.
struct AgentWarning {
  std::string text;
};
struct TimeReply {
  uint32_t number = 0;
  int64_t wall_ns = 0;    // since 1970
  int64_t steady_ns = 0;  // since the boot of the host, or since anything else
};
// "key=value" (host_facts.h of launcher/doctor); a key that is missing was not found out in time.
struct HostExam {
  std::vector<std::string> facts;
};
struct PairMeasured {
  uint32_t number = 0;
  uint32_t peer = 0;
  std::string trouble;          // a sentence; empty: both directions work
  std::string address;          // at which the peer was reached
  int64_t latency_ns = 0;       // median round trip, told by one of the pair; 0: not measured
  uint64_t bytes_a_second = 0;  // from here to the peer; 0: not measured
};
// The answer to HoldCommits.
struct CommitsHeld {
  uint64_t generation = 0, most = 0;
};
// The answer to ForwardSignal. Number 0: the agent itself got the signal.
struct SignalForwarded {
  uint32_t number = 0;
  int32_t signal = 0;
  uint32_t ranks = 0;  // of this host, that handle it
};
// The agent, whose ranks train, got a signal that asks for an end after the step: SIGUSR1, in an
// elastic job also SIGTERM.
struct StopRequested {
  int32_t signal = 0;
};
// The answer to AskMemory: the resident bytes of the worker's own process.
struct MemoryReply {
  uint32_t rank = 0;
  uint64_t bytes = 0;
};
// A rank of this host has waited for a collective for as long as its stall check allows.
struct StallReport {
  uint64_t generation = 0;
  uint32_t waiting = 0;           // the rank
  std::vector<uint32_t> awaited;  // ranks, as far as they are known
};
// Of an elastic job: for so long a rank of this host has waited in a collective; 0: none waits long
// any more. Sent when that changes.
struct GenerationIdle {
  uint64_t generation = 0;
  uint64_t idle_ms = 0;
};
// The answer to ExamineRanks, without ranks of another generation.
struct RanksExamined {
  uint32_t number = 0;
  uint64_t generation = 0;
  std::vector<RankFacts> ranks;
};
// The last message: no process, page or socket of the job is left on this host.
struct AgentGone {};
// Said with AgentReady: where hvdrun lies on this host, for side commands (side_command.h), and the
// address at which the agent will wait for a driver that comes back.
struct AgentPath {
  std::string hvdrun, resume_address;
};

// RankJoined of many, as the tree gathers it: ranks first..first+count-1 each.
struct RankSpan {
  uint32_t first = 0, count = 0;
  bool operator==(const RankSpan&) const = default;
};
struct RanksJoined {
  std::vector<RankSpan> spans;
};
// A message of one of several hosts, gathered on the way up the tree; those of each host in order.
struct TreeUpEntry {
  uint32_t host = 0;
  std::string message;  // an encoded ToDriver
};
struct TreeUp {
  std::vector<TreeUpEntry> entries;
};
// The agent has no way up the tree any more; it speaks for itself and those below it over its own
// stream.
struct TreeCut {
  std::string reason;
};

// The worker records as this rank of a generation from now on. In a job without a timeline neither
// this nor the next is sent.
struct TraceBegun {
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  int64_t at_ns = 0;  // by the host's steady clock
};
// The records of a worker (timeline/FORMAT.md), its stamps in nanoseconds of the host's steady
// clock.
struct TraceRecords {
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  uint64_t lost = 0;  // so many records before them were overwritten
  std::string records;
};

// The activity of a worker just now, as seen from outside.
enum class RankActivity : uint8_t { kOutside = 0, kComputing, kWaiting, kStopped, kLeft };
// The counts of a worker's work since its generation began.
struct WorkerCounts {
  uint32_t worker = 0, rank = 0;
  RankActivity activity = RankActivity::kOutside;
  uint64_t operations = 0, bytes = 0, steps = 0, commits = 0;
  uint64_t last = 0;           // operations of which it was the last one of its host to submit
  int64_t waited_ns = 0;       // a thread of the application waited for an operation
  uint8_t collective = 0;      // hvd_collective of the last one that it submitted
  std::string last_submitted;  // its name; empty: it submitted none
};
// The answer to AskCounts; generation 0: no world has begun on this host.
struct CountsReply {
  uint32_t number = 0;
  uint64_t generation = 0;
  int64_t at_ns = 0;  // by the host's steady clock
  std::vector<WorkerCounts> workers;
};
// What py-spy wrote of a worker, or of the Python that its command has started.
struct WorkerStacks {
  uint32_t worker = 0;
  std::string text;    // empty: it could not be read
  std::string reason;  // why not, a sentence without its subject
};
struct StacksReply {
  uint32_t number = 0;
  std::vector<WorkerStacks> workers;
};
// All workers of a host that use collectives of another library have shown nothing for half of the
// warning time: what they do. Sent again and again; without ranks once, when one moves.
struct ScriptObserved {
  std::vector<ScriptObservation> ranks;
};
// The answer to AskFlight. Number 0: nothing was asked; a worker has ended, and its PyTorch has
// written a dump before.
struct FlightReply {
  uint32_t number = 0;
  std::vector<FlightRecord> records;  // none: no worker records, or none can be asked from outside
};
// Like TraceRecords, of a ring as it is.
struct RingReply {
  uint32_t number = 0;
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  std::string records;
};
struct RingsOver {
  uint32_t number = 0;
};
// Places cannot be taken on this host, and why: a sentence without its name.
struct PlacesRefused {
  std::string reason;
};
// A process of the other launcher is here: it has this place among so many.
struct PlaceTaken {
  uint32_t place = 0, of = 0;
};

// What the agent knows of one worker.
struct WorkerSnapshot {
  uint32_t rank = 0;
  int32_t pid = 0;          // 0: it could not be started
  uint8_t waiting = 0;      // for a generation
  uint64_t generation = 0;  // that it is in; 0: in none
};
// The answer to TakeOver: all that the agent knows of its part of the job.
struct HostSnapshot {
  uint8_t started = 0;      // it has its part of the job
  uint64_t generation = 0;  // the last one begun here
  std::vector<WorkerSnapshot> workers;
  // Of the last generation.
  std::vector<RankLeft> left;
  std::vector<RankLost> lost;
  std::vector<WorkerExited> exited;
};

using ToAgent =
    std::variant<StartJob, BeginGeneration, BreakGeneration, SignalWorkers, FinishJob, WorkerInput,
                 KeyValue, ProbeConnectivity, LookAtCommand, TreeDown, Resend, AskTime, ExamineHost,
                 OpenProbe, MeasurePair, UseRelay, RelayOpen, RelayData, RelayClose, RelayCredit,
                 AwaitDriver, AddWorkers, SignalWorker, DismissWorker, HoldCommits, ActAtCommit,
                 TraceTaken, AskMemory, ExamineRanks, AskCounts, AskRings, AwaitPlaces,
                 MasterPortTaken, ForwardSignal, AskStacks, AskFlight, AwaitSuccessor, TakeOver,
                 OutputPrinted>;
using ToDriver =
    std::variant<AgentReady, WorkerStarted, WorkerNotStarted, RankJoined, RankLeft, RankLost,
                 WorkerExited, WorkerOutput, InputTaken, AgentNote, AgentGone, PutKey, WantKey,
                 ConnectivityProbed, CommandReport, TreeUp, TreeCut, RanksJoined, AgentPath,
                 TimeReply, HostExam, PairMeasured, RelayMeasured, RelayOpen, RelayData, RelayClose,
                 RelayCredit, AgentWarning, CommitsHeld, TraceBegun, TraceRecords, StopRequested,
                 MemoryReply, StallReport, RanksExamined, CountsReply, RingReply, RingsOver,
                 PlacesRefused, PlaceTaken, MasterPortTaken, SignalForwarded, GenerationIdle,
                 StacksReply, ScriptObserved, FlightReply, HostSnapshot>;

std::string EncodeToAgent(const ToAgent& message);
std::string EncodeToDriver(const ToDriver& message);
// kInvalidArgument for anything that is not exactly one message.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToDriver> DecodeToDriver(std::string_view bytes);

// Goes behind control, in its own order: data that may be much.
bool IsBulk(const ToAgent& message);
bool IsBulk(const ToDriver& message);

// A WorkerOutput without copies on the way: its bytes are those of both pieces, and a view into the
// message.
std::string EncodeOutput(uint32_t rank, OutputStream stream, std::string_view first,
                         std::string_view second);
struct WorkerOutputView {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string_view bytes;
};
// Nothing when it is another message, or none: then DecodeToDriver tells.
std::optional<WorkerOutputView> PeekOutput(std::string_view message);

// Bytes that EncodeToDriver adds to those of a WorkerOutput.
inline constexpr size_t kOutputOverhead = 10;

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_MESSAGES_H_
