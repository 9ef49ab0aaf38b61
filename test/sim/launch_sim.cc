#include "test/sim/launch_sim.h"

#include <algorithm>
#include <csignal>
#include <map>

#include "launcher/agent/inspection/connectivity_probe.h"
#include "launcher/wire/probe_partners.h"

namespace hvd {
namespace {

constexpr uint32_t kDriver = ~uint32_t{0};

Plan PlanOf(const LaunchSimOptions& options) {
  std::vector<HostSlots> hosts;
  for (uint32_t i = 0; i < options.hosts; ++i) {
    HostSlots host;
    host.host = "node" + std::to_string(i);
    host.slots = options.ranks_per_host;
    hosts.push_back(host);
  }
  return *MakePlan(hosts, options.hosts * options.ranks_per_host);
}

HostOfRank HostsOf(const LaunchSimOptions& options) {
  const Plan plan = PlanOf(options);
  return HostsOf(plan.Layout(), plan.size());
}

}  // namespace

struct LaunchSim::World {
  struct Process {
    TimePoint busy_until{};
    uint64_t messages = 0, entries = 0, bytes = 0;
  };
  struct Agent : Process {
    Agent(uint32_t host, const TreePlace& place, const HostOfRank& host_of_rank)
        : node(host, place, host_of_rank) {}
    TreeNode node;
    bool gathers = false;
    uint64_t generation = 0;
    uint32_t known = 0;  // of its partners
    bool told_to_end = false;
  };
  struct Event {
    TimePoint at;
    uint64_t order;
    std::function<void()> happens;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  explicit World(LaunchSimOptions the_options)
      : options(the_options),
        tree(options.hosts, options.radix, HostsOf(options)),
        state(PlanOf(options), JobOptions{}) {
    for (uint32_t host = 0; host < options.hosts; ++host)
      agents.emplace_back(host, tree.PlaceOf(host), tree.host_of_rank());
  }

  Process& At(uint32_t who) { return who == kDriver ? driver : agents[who]; }

  void Later(TimePoint at, std::function<void()> happens) {
    events.push({at, order++, std::move(happens)});
  }

  struct Size {
    size_t bytes = 0, entries = 1;
  };

  Duration CostOf(Size size) const {
    return options.per_message + options.per_entry * static_cast<int64_t>(size.entries) +
           options.per_kilobyte * static_cast<int64_t>(size.bytes) / 1024;
  }

  void Handle(Process& process, Size size) {
    process.busy_until = std::max(process.busy_until, now) + CostOf(size);
    ++process.messages;
    process.entries += size.entries;
    process.bytes += size.bytes;
  }

  // `arrives` runs on the other side once that has time for it.
  void Send(uint32_t from, uint32_t to, Size size, std::function<void()> arrives) {
    Process& sender = At(from);
    Handle(sender, size);
    Later(sender.busy_until + options.hop, [this, to, size, arrives = std::move(arrives)] {
      Process& receiver = At(to);
      Handle(receiver, size);
      Later(receiver.busy_until, arrives);
    });
  }

  void RunAll() {
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      now = event.at;
      event.happens();
    }
  }

  // ---- the driver

  void Dispatch(const JobEvent& event) {
    for (const JobAction& action : Step(state, event, now).actions)
      std::visit([this](const auto& a) { Do(a); }, action);
  }

  template <typename Action>
  void Do(const Action&) {}
  void Do(const BeginWorld& begin) {
    directory.Begin(begin.number);
    tree.ToAll(BeginGeneration{begin.number});
  }
  // A message that ends something goes straight to everybody.
  void Do(const SignalWorkers& signal) {
    for (uint32_t host = 0; host < options.hosts; ++host)
      Send(kDriver, host, {EncodeToAgent(signal).size()},
           [this, host] { agents[host].told_to_end = true; });
  }

  void SendDown() {
    for (auto& [host, part] : tree.PopDownward()) {
      const Size size{EncodeToAgent(part).size(), part.entries.size()};
      Send(kDriver, host, size,
           [this, host = host, part = std::move(part)] { FromAbove(host, part); });
    }
  }

  void ReceiveBatch(uint32_t host, const TreeUp& batch) {
    auto messages = *tree.Open(host, batch);
    for (auto& [from, message] : messages) Receive(from, message);
    SendDown();
  }

  void Receive(uint32_t host, const ToDriver& message) {
    if (const auto* put = std::get_if<PutKey>(&message)) {
      for (uint32_t reader : directory.Put(put->key, put->value))
        Give(reader, put->key, put->value);
    } else if (const auto* want = std::get_if<WantKey>(&message)) {
      const std::string* value = directory.Find(want->key);
      if (value != nullptr) return Give(host, want->key, *value);
      directory.Await(host, want->key);
    } else if (const auto* joined = std::get_if<RanksJoined>(&message)) {
      ForEachRank(*joined, state.plan.size(), [this](RankJoined rank) { Dispatch(rank); });
    } else {
      std::visit(
          [this](const auto& m) {
            if constexpr (std::is_constructible_v<JobEvent, decltype(m)>) Dispatch(m);
          },
          message);
    }
  }

  // Where the leader of a host, its first rank, listens.
  std::string AddressKey(uint32_t host) const {
    return "mesh." + std::to_string(host * options.ranks_per_host);
  }

  void Give(uint32_t host, const std::string& key, const std::string& value) {
    tree.ToOne(host, KeyValue{directory.generation(), key, value});
  }

  // ---- an agent, and the ranks of its host

  void Send(uint32_t host, const ToDriver& message) {
    agents[host].node.FromSelf(message);
    Deliver(host);
  }

  void FromAbove(uint32_t host, const TreeDown& message) {
    (void)agents[host].node.FromAbove(message);
    Deliver(host);
  }

  void FromBelow(uint32_t host, uint32_t child, TreeUp batch) {
    (void)agents[host].node.FromBelow(child, std::move(batch));
    Deliver(host);
  }

  void Deliver(uint32_t host) {
    Agent& agent = agents[host];
    for (auto& [child, part] : agent.node.PopDownward()) {
      const Size size{EncodeToAgent(part).size(), part.entries.size()};
      Send(host, child, size,
           [this, child = child, part = std::move(part)] { FromAbove(child, part); });
    }
    if (agent.node.has_up() && !agent.gathers) {
      agent.gathers = true;
      const bool waits = !agent.node.place().below.empty();
      Later(now + (waits ? options.gather : Duration::zero()), [this, host] { SendUp(host); });
    }
    for (const ToAgent& message : agent.node.PopOwn()) Handle(host, message);
  }

  void SendUp(uint32_t host) {
    Agent& agent = agents[host];
    agent.gathers = false;
    TreeUp batch = agent.node.PopUpward();
    const Size size{EncodeToDriver(batch).size(), batch.entries.size()};
    const std::optional<uint32_t> parent = agent.node.place().parent;
    Send(host, parent.value_or(kDriver), size, [this, host, parent, batch = std::move(batch)] {
      parent ? FromBelow(*parent, host, batch) : ReceiveBatch(host, batch);
    });
  }

  void Handle(uint32_t host, const ToAgent& message) {
    Agent& agent = agents[host];
    if (const auto* begin = std::get_if<BeginGeneration>(&message)) {
      agent.generation = begin->generation;
      agent.known = 0;
      Send(host, PutKey{begin->generation, AddressKey(host),
                        "boot.4026531840 10.0.0.1:40000 [fd00::1]:40000"});
      for (uint32_t other : ProbePartners(host, options.hosts))
        Send(host, WantKey{begin->generation, AddressKey(other)});
    } else if (std::holds_alternative<KeyValue>(message)) {
      ++agent.known;
    }
  }

  void Join(uint32_t host) {
    for (const Placement& place : state.plan.OnHost(host)) Send(host, RankJoined{place.rank});
  }

  // ---- measuring

  static void Forget(Process& process) { process.messages = process.entries = process.bytes = 0; }

  template <typename Run>
  LaunchSimPhase Measure(Run run) {
    Forget(driver);
    for (Agent& agent : agents) Forget(agent);
    const TimePoint begin = now;
    run();
    RunAll();
    LaunchSimPhase phase;
    phase.took = now - begin;
    phase.driver_messages = driver.messages;
    phase.driver_entries = driver.entries;
    phase.driver_bytes = driver.bytes;
    uint64_t sum = 0, bytes = 0;
    for (const Agent& agent : agents) {
      sum += agent.messages;
      bytes += agent.bytes;
      phase.busiest_messages = std::max(phase.busiest_messages, agent.messages);
    }
    phase.mean_messages = static_cast<double>(sum) / options.hosts;
    phase.mean_bytes = static_cast<double>(bytes) / options.hosts;
    return phase;
  }

  const LaunchSimOptions options;
  TimePoint now{};
  uint64_t order = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  Process driver;
  std::vector<Agent> agents;
  TreeRoot tree;
  KvTable directory;
  JobState state;
};

LaunchSim::LaunchSim(LaunchSimOptions options) : world_(std::make_unique<World>(options)) {}
LaunchSim::~LaunchSim() = default;

LaunchSimPhase LaunchSim::Start() {
  World& world = *world_;
  return world.Measure([&] {
    world.Dispatch(Begun{});
    for (uint32_t host = 0; host < world.options.hosts; ++host) world.Dispatch(AgentIsReady{host});
    // Its part of the job goes to every host by itself.
    constexpr size_t kStartBytes = 6000;
    for (uint32_t host = 0; host < world.options.hosts; ++host) {
      world.Send(kDriver, host, {kStartBytes}, [&world, host] {
        for (const Placement& place : world.state.plan.OnHost(host))
          world.Send(host, WorkerStarted{place.rank, static_cast<int32_t>(1000 + place.rank)});
        world.Join(host);
      });
    }
  });
}

LaunchSimPhase LaunchSim::NextGeneration() {
  World& world = *world_;
  return world.Measure([&] {
    for (uint32_t host = 0; host < world.options.hosts; ++host) world.Join(host);
  });
}

LaunchSimPhase LaunchSim::Fail(uint32_t rank, int code) {
  World& world = *world_;
  return world.Measure([&] {
    const uint32_t host = world.state.plan.ranks[rank].host;
    world.Send(host, RankLeft{rank, world.state.generation, 1});
    world.Send(host, WorkerExited{rank, 1, {false, code}, 1, "", false});
    world.RunAll();
    world.now += JobOptions{}.survivor_grace;
    world.Dispatch(Tick{});
  });
}

const JobState& LaunchSim::job() const { return world_->state; }

uint32_t LaunchSim::connected() const {
  uint32_t count = 0;
  for (uint32_t host = 0; host < world_->options.hosts; ++host) {
    const auto& agent = world_->agents[host];
    const auto partners = static_cast<uint32_t>(ProbePartners(host, world_->options.hosts).size());
    count += agent.generation == world_->state.generation && agent.known == partners;
  }
  return count;
}

}  // namespace hvd
