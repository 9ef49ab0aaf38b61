#include "launcher/agent/inspection/pair_probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "launcher/output/text/phrases.h"
#include "runtime/base/quantile.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kContactLimit = std::chrono::seconds(6);  // for the first message
constexpr Duration kStepLimit = std::chrono::seconds(3);     // for every other
constexpr Duration kPairLimit = std::chrono::seconds(12);    // for all of it
constexpr Duration kTurn = std::chrono::milliseconds(100);
constexpr Duration kLongBurst = std::chrono::milliseconds(300);
constexpr size_t kFirstBurst = size_t{64} << 10;
constexpr size_t kLastBurst = size_t{16} << 20;
constexpr int kRoundTrips = 21;

// A control word on the connection: the number of bytes that follow, or one of these.
using Word = uint64_t;
constexpr Word kEcho = 0;
constexpr Word kOver = ~Word{0};

// One measurement with one peer, from one side.
class Conversation {
 public:
  Conversation(Mesh& mesh, const MeasurePair& question, std::string name,
               std::function<bool()> stopping)
      : mesh_(mesh),
        peer_(question.peer),
        tag_{question.number, 0},
        name_(std::move(name)),
        stopping_(std::move(stopping)),
        end_(SteadyNow() + kPairLimit) {}

  PairMeasured Lead() {
    if (TimeRoundTrips() && TimeBursts()) Follow();
    return std::move(result_);
  }
  PairMeasured BeLed() {
    if (Follow()) TimeBursts();
    return std::move(result_);
  }

 private:
  bool TimeRoundTrips() {
    std::vector<Duration> times;
    for (int i = 0; i <= kRoundTrips; ++i) {
      TimePoint begin = SteadyNow();
      if (!Send(kEcho, "does not answer") || !Receive("does not answer")) return false;
      if (i > 0) times.push_back(SteadyNow() - begin);  // the first one connects
    }
    result_.latency_ns = std::max<int64_t>(1, Median(std::move(times)).count());
    return true;
  }

  bool TimeBursts() {
    bytes_.resize(kLastBurst);
    for (size_t size = kFirstBurst; size <= kLastBurst; size *= 2) {
      const std::string what = Format(
          "got small messages and not a large one ({} KiB): look for a smaller MTU on the way, and "
          "for a firewall that drops the ICMP messages about it",
          size >> 10);
      TimePoint begin = SteadyNow();
      if (!Send(size, what)) return false;
      MeshHandle burst = mesh_.Send(peer_, tag_, std::span(bytes_).first(size));
      if (!Await(burst, what) || !Receive(what)) return false;
      Duration took = SteadyNow() - begin;
      double seconds = std::max(1e-9, std::chrono::duration<double>(took).count());
      result_.bytes_a_second = static_cast<uint64_t>(static_cast<double>(size) / seconds);
      if (took > kLongBurst) break;
    }
    return Send(kOver, "does not answer");
  }

  // Executes the leader's commands until the measurement is over.
  bool Follow() {
    bytes_.resize(kLastBurst);
    while (true) {
      if (!Receive("is silent")) return false;
      if (heard_ == kOver) return true;
      if (heard_ > kLastBurst) return Fail("speaks of a burst of a wrong size");
      if (heard_ != kEcho) {
        MeshHandle burst = mesh_.Receive(peer_, tag_, std::span(bytes_).first(heard_));
        if (!Await(burst, "sends small messages that arrive and large ones that do not"))
          return false;
      }
      if (!Send(kEcho, "does not take an answer")) return false;
    }
  }

  bool Send(Word word, const std::string& what) {
    std::array<std::byte, sizeof word> bytes;
    std::memcpy(bytes.data(), &word, sizeof word);
    MeshHandle handle = mesh_.Send(peer_, tag_, bytes);
    return Await(handle, what);
  }

  bool Receive(const std::string& what) {
    std::array<std::byte, sizeof heard_> bytes;
    MeshHandle handle = mesh_.Receive(peer_, tag_, bytes);
    if (!Await(handle, what)) return false;
    std::memcpy(&heard_, bytes.data(), sizeof heard_);
    return true;
  }

  bool Await(MeshHandle& handle, const std::string& what) {
    const Duration limit = std::exchange(first_, false) ? kContactLimit : kStepLimit;
    const TimePoint deadline = std::min(end_, SteadyNow() + limit);
    Status status;
    do {
      status = mesh_.Wait(handle, std::min(deadline, SteadyNow() + kTurn));
      if (stopping_()) return Fail("was left");
    } while (status.code() == Code::kInProgress && SteadyNow() < deadline);
    if (status.ok()) return true;
    if (status.code() != Code::kInProgress) return Fail(status.message(), /*whole=*/true);
    return Fail(what + " (within " + SecondsText(limit) + ")");
  }

  bool Fail(const std::string& what, bool whole = false) {
    result_.trouble = whole ? what : name_ + " " + what;
    return false;
  }

  Mesh& mesh_;
  const uint32_t peer_;
  const MeshTag tag_;
  const std::string name_;
  const std::function<bool()> stopping_;
  const TimePoint end_;
  std::vector<std::byte> bytes_;
  Word heard_ = 0;
  bool first_ = true;
  PairMeasured result_;
};

}  // namespace

PairProbe::PairProbe(OpenProbe question, Owner owner)
    : question_(std::move(question)),
      owner_(std::move(owner)),
      directory_(owner_.put, owner_.want),
      thread_([this] { Run(); }) {}

PairProbe::~PairProbe() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  directory_.Stop();
  if (thread_.joinable()) thread_.join();
}

void PairProbe::GiveValue(const std::string& key, const std::string& value) {
  directory_.GiveValue(key, value);
}

void PairProbe::Measure(const MeasurePair& question) {
  {
    MutexLock lock(mutex_);
    asked_.push_back(question);
  }
  changed_.notify_all();
}

bool PairProbe::stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

std::optional<MeasurePair> PairProbe::NextQuestion() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return stopping_ || !asked_.empty(); });
  if (stopping_) return std::nullopt;
  MeasurePair question = asked_.front();
  asked_.erase(asked_.begin());
  return question;
}

Result<std::unique_ptr<Mesh>> PairProbe::OpenMesh() {
  MeshOptions options;
  options.rank = question_.host;
  options.generation = kGeneration;
  options.job_key = question_.job_key;
  options.connect_timeout = kContactLimit - kTurn;
  options.listen = {{}, question_.first_port, question_.last_port};
  options.proves_routes = true;
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(question_.interfaces);
  if (!addresses.ok()) return addresses.status();
  options.listen.addresses = std::move(*addresses);
  options.name = [this](uint32_t host) {
    auto at = std::find(question_.others.begin(), question_.others.end(), host);
    auto index = static_cast<size_t>(at - question_.others.begin());
    return index < question_.names.size() ? question_.names[index] : std::string("it");
  };
  return Mesh::Open(std::move(options), directory_);
}

void PairProbe::Run() {
  Result<std::unique_ptr<Mesh>> mesh = OpenMesh();
  while (std::optional<MeasurePair> question = NextQuestion()) {
    PairMeasured answer;
    if (mesh.ok()) {
      auto at = std::find(question_.others.begin(), question_.others.end(), question->peer);
      auto index = static_cast<size_t>(at - question_.others.begin());
      std::string name = index < question_.names.size() ? question_.names[index] : "it";
      Conversation conversation(**mesh, *question, name, [this] { return stopping(); });
      answer = question->leads != 0 ? conversation.Lead() : conversation.BeLed();
      answer.address = (*mesh)->AddressOf(question->peer);
    } else {
      answer.trouble = mesh.status().message();
    }
    answer.number = question->number;
    answer.peer = question->peer;
    if (!stopping()) owner_.done(std::move(answer));
  }
}

}  // namespace hvd
