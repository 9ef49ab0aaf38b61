#include "launcher/doctor/pair_measurements.h"

#include <algorithm>
#include <set>

#include "configs/message_text.h"
#include "launcher/agent/inspection/pair_probe.h"
#include "launcher/wire/probe_partners.h"
#include "runtime/base/text/format.h"

namespace hvd {

namespace {

constexpr Duration kMargin = std::chrono::seconds(2);

}  // namespace

void PairMeasurements::Plan() {
  const uint32_t count = probed_.size();
  const std::vector<HostPair> pairs = PairsOf(count);
  report_.all_pairs = pairs.size() == size_t{count} * (count - 1) / 2;
  rounds_ = RoundsOf(pairs);
}

std::vector<PairMeasurements::Question> PairMeasurements::BeginRound(
    const std::function<bool(uint32_t)>& is_lost, TimePoint now) {
  std::vector<Question> questions;
  deadline_ = now + PairProbe::kAnswerLimit + kMargin;
  for (const auto& [first, second] : rounds_[round_++]) Begin(first, second, is_lost, &questions);
  return questions;
}

void PairMeasurements::Begin(uint32_t first, uint32_t second,
                             const std::function<bool(uint32_t)>& is_lost,
                             std::vector<Question>* questions) {
  const auto number = static_cast<uint32_t>(round_);
  const auto index = static_cast<uint32_t>(report_.pairs.size());
  PairReport& pair = report_.pairs.emplace_back();
  pair.a = probed_.hosts()[first];
  pair.b = probed_.hosts()[second];
  pair.trouble = ObstacleBetween(pair.a, pair.b, is_lost);
  if (!pair.trouble.empty()) return;
  questions->emplace_back(pair.a, MeasurePair{number, second, 1});
  questions->emplace_back(pair.b, MeasurePair{number, first, 0});
  awaited_.insert({pair.a, index});
  awaited_.insert({pair.b, index});
}

std::string PairMeasurements::ObstacleBetween(uint32_t a, uint32_t b,
                                              const std::function<bool(uint32_t)>& is_lost) const {
  for (uint32_t host : {a, b}) {
    if (is_lost(host)) return report_.hosts[host].name + " was lost";
  }
  const bool a_reaches = probed_.Reached(a, b);
  if (a_reaches && probed_.Reached(b, a)) return "";
  const uint32_t from = a_reaches ? b : a, to = a_reaches ? a : b;
  const std::string why = probed_.ReasonFor(from, to);
  return report_.hosts[from].name +
         (why.empty() ? " does not reach " + report_.hosts[to].name : ": " + why);
}

void PairMeasurements::Receive(uint32_t host, const PairMeasured& measured) {
  if (measured.number != round_ || measured.peer >= probed_.size()) return;
  const uint32_t peer = probed_.hosts()[measured.peer];
  auto awaited = std::ranges::find_if(awaited_, [&](const auto& entry) {
    const PairReport& pair = report_.pairs[entry.second];
    return entry.first == host && (pair.a == peer || pair.b == peer);
  });
  if (awaited == awaited_.end()) return;
  PairReport& pair = report_.pairs[awaited->second];
  awaited_.erase(awaited);
  const bool leads = pair.a == host;
  (leads ? pair.address_b : pair.address_a) = Printable(measured.address);
  (leads ? pair.a_to_b : pair.b_to_a) = static_cast<double>(measured.bytes_a_second);
  if (leads) pair.latency = std::chrono::nanoseconds(measured.latency_ns);
  // The leading host knows better why it failed.
  if (!measured.trouble.empty() && (leads || pair.trouble.empty())) {
    pair.trouble = Printable(measured.trouble, 500);
  }
}

void PairMeasurements::GiveUp(uint32_t host, const std::string& why) {
  std::set<uint32_t> indices;
  for (const auto& [asked, index] : awaited_) {
    if (report_.pairs[index].a == host || report_.pairs[index].b == host) indices.insert(index);
  }
  for (uint32_t index : indices) report_.pairs[index].trouble = why;
  std::erase_if(awaited_, [&](const auto& entry) { return indices.contains(entry.second); });
}

void PairMeasurements::Tick(TimePoint now) {
  if (now < deadline_) return;
  for (const auto& [host, index] : std::exchange(awaited_, {})) {
    PairReport& pair = report_.pairs[index];
    if (!pair.trouble.empty()) continue;
    pair.trouble = report_.hosts[host].name + " did not measure it in time; is it overloaded?";
  }
}

void PairMeasurements::Interrupt() {
  for (const auto& [host, index] : std::exchange(awaited_, {})) {
    report_.pairs[index].trouble = "was interrupted";
  }
}

std::string PairMeasurements::Progress() const {
  return Format("round {} of {}", round_, rounds_.size());
}

std::vector<HostPair> PairsOf(uint32_t hosts) {
  std::vector<HostPair> pairs;
  for (uint32_t host = 0; host < hosts; ++host) {
    for (uint32_t other : ProbePartners(host, hosts)) {
      if (host < other) pairs.emplace_back(host, other);
    }
  }
  // By distance around the circle: pairs of equal distance fill few rounds.
  std::stable_sort(pairs.begin(), pairs.end(), [hosts](const HostPair& x, const HostPair& y) {
    auto distance = [hosts](const HostPair& pair) {
      return std::min(pair.second - pair.first, hosts - (pair.second - pair.first));
    };
    return distance(x) < distance(y);
  });
  return pairs;
}

std::vector<std::vector<HostPair>> RoundsOf(const std::vector<HostPair>& pairs) {
  std::vector<std::vector<HostPair>> rounds;
  std::vector<std::set<uint32_t>> busy;
  for (const HostPair& pair : pairs) {
    size_t round = 0;
    while (round < rounds.size() &&
           (busy[round].contains(pair.first) || busy[round].contains(pair.second))) {
      ++round;
    }
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({pair.first, pair.second});
  }
  return rounds;
}

}  // namespace hvd
